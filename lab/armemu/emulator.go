// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

// Options configure an Emulator. With the zero value, operations complete at once, overlapping
// writes supersede each other, nothing is throttled, and any bearer token is accepted.
type Options struct {
	// Seed makes random values repeatable for the same order of requests.
	Seed uint64
	// Token is the required bearer token; empty accepts any.
	Token string
	// Role restricts the caller; nil allows everything.
	Role *Role
	// LatencyScale multiplies the latency model; 0 completes an operation at once (its first
	// response is still Updating).
	LatencyScale float64
	// Latency defaults to Quiet.
	Latency Latency
	// LatencyFixed uses medians instead of random draws, so latency does not depend on the order of
	// requests.
	LatencyFixed bool
	// Behavior: unset answers use the defaults.
	Behavior behavior.Behavior
	// Throttle, e.g. AzureLimits; nil disables throttling.
	Throttle *Limits
	// StrictResourceGroups answers 404 for groups that were not created explicitly. Otherwise any
	// write creates its group.
	StrictResourceGroups bool
	// LockedGroups are names of resource groups in which a deny assignment blocks everything but reads, as in
	// the node resource group of an AKS cluster with lockdown.
	LockedGroups []string
	// MaxPrivateLinks per load balancer; 0 is 8, which Azure raises on request.
	MaxPrivateLinks int
	// Zones are the availability zones of every region. Nil is none, and zones in requests are not checked; an empty
	// list is none, and they are.
	Zones []string
	// PublicIPv4Range of public IPs outside prefixes; unset is 198.18.0.0/16.
	PublicIPv4Range netip.Prefix
	// MaxStandardIPs per IP family, subscription and region; 0 is 1,000.
	MaxStandardIPs int
	// OlderVersionPolicy defaults to RejectOlderVersion.
	OlderVersion OlderVersionPolicy
	// HideDeleted answers 404 to a GET during deletion. References remain in use until it ends.
	HideDeleted bool
	// CallLogCap limits the call log; 0 retains all.
	CallLogCap int
}

// Emulator is one Azure cloud and an http.Handler.
type Emulator struct {
	mu sync.Mutex // guards all fields below; never held while time passes

	opts         Options
	random       *rand.Rand
	aggregates   map[string]*aggregate // by lower-cased ARM ID
	operations   map[string]*operation // by operation ID
	groups       map[string]*resourceGroup
	deletions    map[string]*groupDeletion // of groups, by operation ID
	revision     int                       // grows with each change of a resource
	opOrder      []string                  // oldest first
	running      []*operation
	limits       *limiter
	faults       *faultScript
	calls        callLog
	retryAfters  retryAfterTracker
	violations   []Violation
	links        *referenceIndex // nil if stale
	restoring    bool            // restoring a snapshot: keep its etags
	lastPublicIP publicIPCursor  // public addresses allocated last
	flows        *flowHistory    // nil until a node dies
	health       map[healthKey]string
	probed       func(probe ForwardingProbe, member netip.Addr) (up, known bool) // nil without a data plane
}

// New returns an empty cloud.
func New(opts Options) *Emulator {
	opts.Behavior = opts.Behavior.WithDefaults(behavior.AssumedBehavior())
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

// SetLatencyScale changes the latency of future operations.
func (e *Emulator) SetLatencyScale(scale float64) error {
	if !(scale >= 0 && scale <= 1000) {
		return fmt.Errorf("latency scale %v is out of range: use 0 (at once) to 1000, 1 is the model", scale)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.LatencyScale = scale
	return nil
}

// SetFaults replaces the fault script, in YAML; empty removes it. Time windows count from this
// call. An invalid script changes nothing.
func (e *Emulator) SetFaults(script string) error {
	parsed, err := parseFaults([]byte(script))
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	parsed.resetRules(e.opts.Seed, time.Now())
	e.faults = parsed
	return nil
}

// Faults returns the text of the active fault script.
func (e *Emulator) Faults() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faults == nil {
		return ""
	}
	return e.faults.text
}

func (e *Emulator) newGUID() string {
	a, b := e.random.Uint64(), e.random.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

func (e *Emulator) newEtag() string { return `W/"` + e.newGUID() + `"` }

// renewEtag: etags of Microsoft.Compute are numbers.
func (e *Emulator) renewEtag(agg *aggregate) {
	if agg.id.root.namespace != compute {
		agg.etag = e.newEtag()
		return
	}
	n, _ := strconv.Atoi(strings.Trim(agg.etag, `"`))
	agg.etag = strconv.Quote(strconv.Itoa(n + 1))
}
