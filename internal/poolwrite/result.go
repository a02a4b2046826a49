// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
)

// AttemptDeadline is an attempt's timeout. The next read resolves what it leaves open.
const AttemptDeadline = 10 * time.Minute

// Result is what an attempt knows.
type Result struct {
	Outcome Outcome
	Fault   *fault.Fault
	Wanted  []lb.Address
	// Observed includes foreign addresses; -1 if not read.
	Observed int
	// Todo is what to write.
	Todo Change
	// What to record once in sync.
	written, down []netip.Addr
	instances     map[string]netip.Addr
	// shown identifies the network interfaces.
	shown   uint64
	twins   []lb.Address
	awaited []netip.Addr
	// Members is true if addresses change.
	Members bool
	// ledger is the record as first read, or nil.
	ledger *Recorded
	// Overtaken is true after a conflicting write.
	Overtaken bool
	// Interfaces is true for network interfaces where addresses are wanted: Outcome is about admin
	// states, and the membership is rejected.
	Interfaces bool
	// HandOver is set for a pool of network interfaces. The next field is set while its members are
	// pending or failed, and Outcome is then about admin states only.
	HandOver *HandOver
	Handed   *Handed
	// Unusable nodes cannot join.
	Unusable []Unusable
	// Brought is true after the handover.
	Brought bool
	fate
}

// Begin returns an empty result. unguarded is true if Azure ignores If-Match on pools.
func Begin(m Memory, unguarded bool) Result {
	return Result{Observed: -1, fate: fate{lost: m.Lost, earlier: m.Lost, kept: m.kept, unguarded: unguarded}}
}

// Settled reports whether the pool is in sync.
func (r Result) Settled() bool { return r.Directed() && r.OfMembers() == "" }

// OfMembers is the membership's outcome if Outcome is about admin states only, or empty.
func (r Result) OfMembers() Outcome {
	switch {
	case r.Interfaces:
		return Refused
	case r.Handed != nil:
		return r.Handed.Outcome
	}
	return ""
}

// Desired counts the wanted addresses with machines that can join.
func (r Result) Desired() int {
	without := map[netip.Addr]bool{}
	for _, u := range r.Unusable {
		without[u.IP] = true
	}
	return len(r.Wanted) - len(without)
}

// Shows identifies the network interfaces that were read; zero for addresses.
func (r Result) Shows() uint64 { return r.shown }

// Directed reports whether the admin states are in sync.
func (r Result) Directed() bool { return r.Outcome == Written || r.Outcome == Unchanged }

// Level returns the fingerprint of the known membership, or nil.
func (r Result) Level() *uint64 {
	if !r.Settled() || r.Open {
		return nil
	}
	return new(membership.Fingerprint(r.Wanted, r.twins, membership.Nameless(r.awaited)))
}

// Sends records that a write is being sent.
func (r *Result) Sends() { r.lost, r.wrote = r.Todo.Next.Etag, true }

// Shown returns an error if Azure does not show what was written.
func (r *Result) Shown(pool lb.Pool) error {
	r.Observed = len(pool.Addresses)
	if !r.Todo.ShownBy(namedAs(pool, r.Todo.Next)) {
		return newRetriableBackendPoolUpdateError(
			fmt.Errorf("pool %s: Azure reported success and shows %d addresses where %d were written, or other admin states",
				r.Todo.Next.ID.Name, len(pool.Addresses), len(r.Todo.Next.Addresses)))
	}
	r.Fenced(pool.Etag)
	return nil
}

// Anew returns the result before a second try, with what the first has read, and written if that
// may land.
func (r Result) Anew(before Result, met *fault.Fault) Result {
	before.Observed, before.Wanted, before.ledger, before.Overtaken = r.Observed, r.Wanted, r.ledger, met.Overtaken()
	if met.Undecided {
		before.lost, before.earlier, before.wrote = r.lost, r.lost, true
	}
	return before
}

// Again returns the result before a second read, after a conflicting write. landed is true if the
// rejected write may have landed.
func (r Result) Again(initial Result, landed bool) Result {
	initial.ledger, initial.Overtaken, initial.Members = r.ledger, true, r.Members
	if landed {
		initial.lost, initial.earlier, initial.wrote = r.lost, r.lost, true
	}
	return initial
}

// End returns the result for err. stopping is true on shutdown, late after the deadline.
func (r Result) End(err error, stopping, late bool) Result {
	decided := !r.Open
	if err != nil {
		decided = r.lost != r.earlier && !fault.From(err).Undecided && !late
	}
	if decided {
		r.lost = "" // it has landed, or never will
	}
	switch {
	case err == nil:
		return r
	case stopping:
		r.Fault = fault.Classify(fault.Answer{Stopping: true}, err)
	case errors.Is(err, ErrNotReady):
		r.Outcome, r.Fault = Postponed, &fault.Fault{Class: fault.Retriable, Code: "NotReady", Reason: "not_ready", Err: err}
		return r
	case r.Observed < 0 && fault.From(err).Code == fault.CodeResting: // no request was sent
		r.Outcome, r.Fault = Postponed, fault.From(err)
		return r
	case late:
		r.Fault = faultOf(newRetriableBackendPoolUpdateError(fmt.Errorf("no end within %s: %w", AttemptDeadline, err)))
	case r.Outcome == Refused:
		r.Fault = refusal(err)
		return r
	default:
		r.Fault = faultOf(err)
	}
	r.Outcome = outcomeOf(r.Fault)
	return r
}

// Reported returns the outcome to report: for network interfaces that of the members.
func (r Result) Reported(pool lb.PoolID) (Outcome, *fault.Fault) {
	switch {
	case !r.Directed():
	case r.Interfaces:
		return Refused, refusal(errInterfaces(pool))
	case r.Handed != nil:
		return r.Handed.Outcome, r.Handed.Fault
	}
	return r.Outcome, r.Fault
}

// GaveUpOn returns the error for which a change without further retries is given up, or empty.
func GaveUpOn(outcome Outcome, f *fault.Fault) string {
	if outcome == Retriable || outcome == Terminal {
		return ErrorName(f)
	}
	return ""
}
