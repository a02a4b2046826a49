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

// AttemptDeadline is the timeout of one attempt. The next read resolves what it leaves open.
const AttemptDeadline = 10 * time.Minute

// Result is what an attempt has learned so far.
type Result struct {
	Outcome Outcome
	Fault   *fault.Fault
	Wanted  []lb.Address
	// Observed counts the pool's addresses including foreign ones; -1 if it was not read.
	Observed int
	// Todo is the change to write.
	Todo Change
	// written are the managed addresses of the pool in sync, down those that Weir keeps Down.
	written, down []netip.Addr
	// instances maps instances of uniform scale sets to their addresses among written.
	instances map[string]netip.Addr
	// shown is the hash of a pool's network interfaces; see shownIn.
	shown uint64
	// twins and awaited are those of Desired.
	twins   []lb.Address
	awaited []netip.Addr
	// Members is true if the write changes the set of addresses.
	Members bool
	// ledger is the record as first read; nil if not read.
	ledger *Recorded
	// Overtaken is true if another client wrote between read and write.
	Overtaken bool
	// Interfaces is true for a pool of network interfaces that should hold addresses: Outcome is
	// about its admin states, the membership is Refused.
	Interfaces bool
	// HandOver is the target of a pool of network interfaces, nil for others. Handed is its pending
	// state, nil if done; if set, Outcome is about admin states only.
	HandOver *HandOver
	Handed   *Handed
	// Unusable are the Wanted nodes whose machine cannot join.
	Unusable []Unusable
	// Brought is true once the target was handed over.
	Brought bool
	fate
}

// Begin returns the initial result of an attempt. unguarded is true if Azure ignores If-Match on
// pools.
func Begin(m Memory, unguarded bool) Result {
	return Result{Observed: -1, fate: fate{lost: m.Lost, earlier: m.Lost, kept: m.kept, unguarded: unguarded}}
}

// Settled reports whether the pool is known to be in sync.
func (r Result) Settled() bool { return r.Directed() && r.OfMembers() == "" }

// OfMembers is the outcome of the membership if Outcome is about admin states only; otherwise
// empty.
func (r Result) OfMembers() Outcome {
	switch {
	case r.Interfaces:
		return Refused
	case r.Handed != nil:
		return r.Handed.Outcome
	}
	return ""
}

// Desired counts the wanted addresses whose machines can join.
func (r Result) Desired() int {
	without := map[netip.Addr]bool{}
	for _, u := range r.Unusable {
		without[u.IP] = true
	}
	return len(r.Wanted) - len(without)
}

// Shows identifies the network interfaces that were read; zero for a pool of addresses.
func (r Result) Shows() uint64 { return r.shown }

// Directed reports whether the admin states are known to be in sync.
func (r Result) Directed() bool { return r.Outcome == Written || r.Outcome == Unchanged }

// Level returns the fingerprint of the membership that the pool is known to hold, or nil.
func (r Result) Level() *uint64 {
	if !r.Settled() || r.Open {
		return nil
	}
	return new(membership.Fingerprint(r.Wanted, r.twins, membership.Nameless(r.awaited)))
}

// Sends records that the pool is about to be written.
func (r *Result) Sends() { r.lost, r.wrote = r.Todo.Next.Etag, true }

// Shown processes what Azure shows after the write; an error means that it differs.
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

// Anew returns the initial result of a second try: reads of the first, and its write if that may
// land. before is the result before the first try.
func (r Result) Anew(before Result, met *fault.Fault) Result {
	before.Observed, before.Wanted, before.ledger, before.Overtaken = r.Observed, r.Wanted, r.ledger, met.Overtaken()
	if met.Undecided {
		before.lost, before.earlier, before.wrote = r.lost, r.lost, true
	}
	return before
}

// Again returns the initial result of a second read after a conflicting write. anew is an empty
// result. landed is true if the rejected write may have taken effect in an earlier request.
func (r Result) Again(anew Result, landed bool) Result {
	anew.ledger, anew.Overtaken, anew.Members = r.ledger, true, r.Members
	if landed {
		anew.lost, anew.earlier, anew.wrote = r.lost, r.lost, true
	}
	return anew
}

// End returns the result of an attempt that ended with err. stopping is true on shutdown, late if
// the attempt's deadline has passed.
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

// Reported returns the outcome to report: for a pool of network interfaces that of its members,
// even if its admin states are in sync.
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

// GaveUpOn returns the error name for which a change is given up if no retry follows; empty if it
// is not.
func GaveUpOn(outcome Outcome, f *fault.Fault) string {
	if outcome == Retriable || outcome == Terminal {
		return ErrorName(f)
	}
	return ""
}
