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

// AttemptDeadline bounds one attempt. What it leaves behind is settled by the next read.
const AttemptDeadline = 10 * time.Minute

// Result is what an attempt found out so far.
type Result struct {
	Outcome Outcome
	Fault   *fault.Fault
	Wanted  []lb.Address
	// Observed counts the addresses of the pool, foreign ones included; -1 if it was not read.
	Observed int
	// Todo is what the pool has to become.
	Todo Change
	// written are the addresses that are ours once the pool is level, and down those that are
	// Down by us then.
	written, down []netip.Addr
	// instances are those of them that instances of uniform scale sets have, by machine.
	instances map[string]netip.Addr
	// shown is what a pool of network interfaces shows.
	shown uint64
	// twins and awaited are those of the membership.
	twins   []lb.Address
	awaited []netip.Addr
	// Members is true if the write changes which addresses the pool has.
	Members bool
	// ledger is what the ledger held; nil if nobody asked it.
	ledger *Recorded
	// Overtaken is true if somebody else wrote between the read and the write.
	Overtaken bool
	// Interfaces is true for a pool of network interfaces that is to hold addresses: the outcome
	// speaks of its admin states, and its membership is refused.
	Interfaces bool
	// HandOver is what a pool of network interfaces has to become; nil of any other one. Handed is
	// what became of that: then the outcome speaks of its admin states; nil if nothing is left to do.
	HandOver *HandOver
	Handed   *Handed
	// Unusable are the nodes of Wanted whose machine cannot join.
	Unusable []Unusable
	// Brought is true once it was handed over.
	Brought bool
	fate
}

// Begin returns the result of an attempt that has found out nothing yet. unguarded is true of an
// Azure that heeds no If-Match in writes of pools.
func Begin(m Memory, unguarded bool) Result {
	return Result{Observed: -1, fate: fate{lost: m.Lost, earlier: m.Lost, kept: m.kept, unguarded: unguarded}}
}

// Settled reports whether the pool is known to be level.
func (r Result) Settled() bool { return r.Directed() && r.OfMembers() == "" }

// OfMembers is the outcome of the membership where the outcome speaks of the admin states alone; else
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

// Desired counts the addresses that the pool has to hold, as far as that can be.
func (r Result) Desired() int {
	without := map[netip.Addr]bool{}
	for _, u := range r.Unusable {
		without[u.IP] = true
	}
	return len(r.Wanted) - len(without)
}

// Shows is equal for reads that show the same network interfaces; zero of a pool of addresses.
func (r Result) Shows() uint64 { return r.shown }

// Directed reports whether its admin states are known to be as they have to.
func (r Result) Directed() bool { return r.Outcome == Written || r.Outcome == Unchanged }

// Level returns the fingerprint of the membership that the pool now holds, or nil.
func (r Result) Level() *uint64 {
	if !r.Settled() || r.Open {
		return nil
	}
	return new(membership.Fingerprint(r.Wanted, r.twins, membership.Nameless(r.awaited)))
}

// Sends takes in that the pool is about to be written.
func (r *Result) Sends() { r.lost, r.wrote = r.Todo.Next.Etag, true }

// Shown takes in what Azure shows after the pool was written. An error says that this is not what
// was written.
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

// Anew returns what a second try of the attempt begins with: what the first has read stays known,
// and what it has written if that may land. r is what the first try came to, and before what was
// known before it.
func (r Result) Anew(before Result, met *fault.Fault) Result {
	before.Observed, before.Wanted, before.ledger, before.Overtaken = r.Observed, r.Wanted, r.ledger, met.Overtaken()
	if met.Undecided {
		before.lost, before.earlier, before.wrote = r.lost, r.lost, true
	}
	return before
}

// Again returns what a second read of the attempt begins with after a write that somebody else was
// faster than. anew is the result of one that has found out nothing yet, and landed is true if the
// write that was refused may have been sent before, and have landed.
func (r Result) Again(anew Result, landed bool) Result {
	anew.ledger, anew.Overtaken, anew.Members = r.ledger, true, r.Members
	if landed {
		anew.lost, anew.earlier, anew.wrote = r.lost, r.lost, true
	}
	return anew
}

// End returns the result of an attempt that ended with err. stopping is true where the process ends,
// and late where the attempt has had its time.
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
	case r.Observed < 0 && fault.From(err).Code == fault.CodeResting: // nothing has left
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

// Reported is the outcome that people hear of: of a pool of network interfaces they hear what became
// of its members, however well it is directed.
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

// GaveUpOn is what a pool's change is given up for after an attempt that no other
// follows, by what is reported of it; empty if it is not.
func GaveUpOn(outcome Outcome, f *fault.Fault) string {
	if outcome == Retriable || outcome == Terminal {
		return ErrorName(f)
	}
	return ""
}
