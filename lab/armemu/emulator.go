// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/behaviour"
)

// Options configure an Emulator. The zero value answers at once, supersedes
// overlapping writes, throttles nothing and accepts any bearer token.
type Options struct {
	// Seed makes etags, operation ids, latencies and fault probabilities
	// repeatable for the same order of requests.
	Seed uint64
	// Token is the bearer token that requests must carry. Empty accepts any
	// token, but one must be present.
	Token string
	// Role is what the caller may do; nil allows everything.
	Role *Role
	// LatencyScale stretches the latency model: 1 is the model, 0 completes an
	// operation at once (its first answer still says Updating).
	LatencyScale float64
	// Latency is the profile of the latency model; empty is Quiet.
	Latency Latency
	// LatencyFixed lets every operation take its type's median instead of a draw
	// from the model, so that its length does not depend on the order of requests.
	LatencyFixed bool
	// Behaviour answers what is not known of Azure; what it leaves open is as
	// defaults has it.
	Behaviour behaviour.Behaviour
	// Throttle sets the request limits; nil throttles nothing.
	// AzureLimits returns the documented ones.
	Throttle *Limits
	// StrictResourceGroups answers 404 for whatever lies in a resource group that
	// nobody has made, by a PUT or a seed. Without it any write makes its group.
	StrictResourceGroups bool
	// MostPrivateLinks is how many private link services a load balancer takes; 0 is 8, which Azure
	// lifts for a subscription that asks.
	MostPrivateLinks int
	// MostStandardIPs is how many Standard public IP addresses of a family a subscription may have in a region; 0 is 1,000.
	MostStandardIPs int
	// OlderVersion is what a PUT does whose api-version is older than a property that the resource has;
	// empty is RejectOlder.
	OlderVersion OlderVersion
	// HideDeleted answers 404 to a GET of a resource that is being deleted. What it uses stays in use
	// until the deletion ends.
	HideDeleted bool
	// CallLogCap keeps the newest calls only; 0 keeps all.
	CallLogCap int
}

// Emulator is one Azure cloud. It implements http.Handler.
type Emulator struct {
	mu sync.Mutex // guards all below; never held while time passes

	opts       Options
	random     *rand.Rand
	aggregates map[string]*aggregate     // by lower-cased ARM id
	operations map[string]*operation     // by operation id
	groups     map[string]*resourceGroup // by groupKey
	deletions  map[string]*groupDeletion // of groups, by operation id
	opOrder    []string                  // operation ids, oldest first
	running    []*operation
	limits     *limiter
	faults     *faultScript
	calls      callLog
	patience   patience
	violations []Violation
	links      *links       // who refers to whom; nil when it has to be built anew
	loading    bool         // etags are a snapshot's: nothing but it changes them
	lastPublic publicCursor // the public addresses given last
	flows      *flowHistory // nil until a node dies
}

// New returns an empty cloud.
func New(opts Options) *Emulator {
	opts.Behaviour = opts.Behaviour.Or(behaviour.Assumed())
	if opts.Latency == "" {
		opts.Latency = Quiet
	}
	return &Emulator{
		opts:       opts,
		random:     rand.New(rand.NewPCG(opts.Seed, 0x77656972)), //nolint:gosec // repeatable on purpose
		aggregates: map[string]*aggregate{},
		operations: map[string]*operation{},
		groups:     map[string]*resourceGroup{},
		deletions:  map[string]*groupDeletion{},
		limits:     newLimiter(opts.Throttle),
		calls:      callLog{limit: opts.CallLogCap},
	}
}

// SetLatencyScale changes the latency of operations to come.
func (e *Emulator) SetLatencyScale(scale float64) error {
	if !(scale >= 0 && scale <= 1000) {
		return fmt.Errorf("latency scale %v is out of range: use 0 (at once) to 1000, 1 is the model", scale)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.LatencyScale = scale
	return nil
}

// SetFaults replaces the fault script by this YAML text; empty removes it.
// Time windows in the script count from this call. A script that does not
// parse changes nothing.
func (e *Emulator) SetFaults(script string) error {
	parsed, err := parseFaults([]byte(script))
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	parsed.arm(e.opts.Seed, time.Now())
	e.faults = parsed
	return nil
}

// Faults returns the text of the fault script in force.
func (e *Emulator) Faults() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faults == nil {
		return ""
	}
	return e.faults.text
}

// guid returns a seeded identifier in the form Azure uses.
func (e *Emulator) guid() string {
	a, b := e.random.Uint64(), e.random.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

func (e *Emulator) newEtag() string { return `W/"` + e.guid() + `"` }

// retag gives a resource another etag. Those of Microsoft.Compute are numbers.
func (e *Emulator) retag(agg *aggregate) {
	if agg.id.root.namespace != compute {
		agg.etag = e.newEtag()
		return
	}
	n, _ := strconv.Atoi(strings.Trim(agg.etag, `"`))
	agg.etag = strconv.Quote(strconv.Itoa(n + 1))
}
