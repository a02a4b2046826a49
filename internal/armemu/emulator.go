// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
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
	// LatencyFixed lets every operation take its type's median instead of a draw
	// from the model, so that its length does not depend on the order of requests.
	LatencyFixed bool
	// Overlap says what a write meets while another runs on its aggregate.
	// Empty is Supersede.
	Overlap Overlap
	// LockWithoutRetryAfter leaves the Retry-After header off the 429 that
	// Overlap Lock answers. Whether Azure sends it is not known.
	LockWithoutRetryAfter bool
	// IgnoreInlineAddresses has a PUT of a load balancer leave the addresses of
	// the pools that are there as they are, though it answers success. Whether
	// Azure takes them is recorded nowhere: a client has to look.
	IgnoreInlineAddresses bool
	// Throttle sets the request limits; nil throttles nothing.
	// AzureLimits returns the documented ones.
	Throttle *Limits
	// StrictResourceGroups answers 404 for whatever lies in a resource group that
	// nobody has made, by a PUT or a seed. Without it any write makes its group.
	StrictResourceGroups bool
	// CallLogCap keeps the newest calls only; 0 keeps all.
	CallLogCap int
}

// Overlap is what happens to a write that arrives while another operation runs
// on the same load balancer or other resource with an etag of its own.
type Overlap string

// The overlap policies.
const (
	// Supersede cancels the running operation and accepts the new write. What
	// the earlier write put stays unless the later one overwrites it (assumed).
	Supersede Overlap = "supersede"
	// SupersedeDiscard is Supersede, but takes the earlier write back first: a
	// client that takes Canceled for success loses its update.
	SupersedeDiscard Overlap = "supersede-discard"
	// Lock answers 429 RetryableErrorDueToAnotherOperation.
	Lock Overlap = "lock-429"
	// Conflict answers 409 AnotherOperationInProgress.
	Conflict Overlap = "conflict-409"
)

// Overlaps lists every policy, in the order of the documentation.
func Overlaps() []Overlap { return []Overlap{Supersede, SupersedeDiscard, Lock, Conflict} }

// ParseOverlap returns the policy of that name; empty is Supersede.
func ParseOverlap(name string) (Overlap, error) {
	if name == "" {
		return Supersede, nil
	}
	for _, o := range Overlaps() {
		if string(o) == name {
			return o, nil
		}
	}
	return "", fmt.Errorf("overlap policy %q is unknown: use one of %v", name, Overlaps())
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
	links      *links       // who refers to whom; nil when it has to be built anew
	lastPublic publicCursor // the public addresses given last
	flows      *flowHistory // nil until a node dies
}

// New returns an empty cloud.
func New(opts Options) *Emulator {
	if opts.Overlap == "" {
		opts.Overlap = Supersede
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

// SetOverlap changes the overlap policy for writes to come.
func (e *Emulator) SetOverlap(o Overlap) error {
	parsed, err := ParseOverlap(string(o))
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.Overlap = parsed
	return nil
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

// SetIgnoreInlineAddresses changes the option for writes to come.
func (e *Emulator) SetIgnoreInlineAddresses(ignore bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opts.IgnoreInlineAddresses = ignore
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
