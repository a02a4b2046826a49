// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
)

// attemptDeadline bounds one attempt. What it leaves behind is settled by the next read.
const attemptDeadline = 10 * time.Minute

// result is what an attempt found out so far.
type result struct {
	outcome Outcome
	fault   *fault.Fault
	wanted  []lb.Address
	// observed counts the addresses of the pool, foreign ones included; -1 if it was not read.
	observed int
	// todo is what the pool has to become.
	todo change
	// written are the addresses that are ours once the pool is level, and down those that are
	// Down by us then.
	written, down []netip.Addr
	// members is true if the write changes which addresses the pool has.
	members bool
	// ledger is what the ledger held; nil if nobody asked it.
	ledger *Recorded
	// overtaken is true if somebody else wrote between the read and the write.
	overtaken bool
	// interfaces is true for a pool of network interfaces: the outcome speaks of its admin
	// states, and its membership is refused.
	interfaces bool
	fate
}

// begin returns the result of an attempt that has found out nothing yet. unguarded is true of an
// Azure that heeds no If-Match in writes of pools.
func begin(m memory, unguarded bool) result {
	return result{observed: -1, fate: fate{lost: m.lost, earlier: m.lost, kept: m.kept, unguarded: unguarded}}
}

// settled reports whether the pool is known to be level.
func (r result) settled() bool { return r.directed() && !r.interfaces }

// directed reports whether its admin states are known to be as they have to.
func (r result) directed() bool { return r.outcome == Written || r.outcome == Unchanged }

// level returns the fingerprint of the membership that the pool now holds, or nil.
func (r result) level() *uint64 {
	if !r.settled() || r.open {
		return nil
	}
	return new(membership.Fingerprint(r.wanted))
}

// sends takes in that the pool is about to be written.
func (r *result) sends() { r.lost, r.wrote = r.todo.next.Etag, true }

// shown takes in what Azure shows after the pool was written. An error says that this is not what
// was written.
func (r *result) shown(pool lb.Pool) error {
	r.observed = len(pool.Addresses)
	if !r.todo.shownBy(namedAs(pool, r.todo.next)) {
		return newRetriableBackendPoolUpdateError(
			fmt.Errorf("pool %s: Azure reported success and shows %d addresses where %d were written, or other admin states",
				r.todo.next.ID.Name, len(pool.Addresses), len(r.todo.next.Addresses)))
	}
	r.fenced(pool.Etag)
	return nil
}

// anew returns what a second try of the attempt begins with: what the first has read stays known,
// and what it has written if that may land. r is what the first try came to, and before what was
// known before it.
func (r result) anew(before result, met *fault.Fault) result {
	before.observed, before.wanted, before.ledger, before.overtaken = r.observed, r.wanted, r.ledger, met.Overtaken()
	if met.Undecided {
		before.lost, before.earlier, before.wrote = r.lost, r.lost, true
	}
	return before
}

// again returns what a second read of the attempt begins with after a write that somebody else was
// faster than. anew is the result of one that has found out nothing yet, and landed is true if the
// write that was refused may have been sent before, and have landed.
func (r result) again(anew result, landed bool) result {
	anew.ledger, anew.overtaken, anew.members = r.ledger, true, r.members
	if landed {
		anew.lost, anew.earlier, anew.wrote = r.lost, r.lost, true
	}
	return anew
}

// end returns the result of an attempt that ended with err, made within a context of its own.
func (r result) end(ctx, within context.Context, err error) result {
	decided := !r.open
	if err != nil {
		decided = r.lost != r.earlier && !fault.From(err).Undecided && within.Err() == nil
	}
	if decided {
		r.lost = "" // it has landed, or never will
	}
	switch {
	case err == nil:
		return r
	case ctx.Err() != nil:
		r.fault = fault.Classify(fault.Answer{Stopping: true}, err)
	case errors.Is(err, errNotReady):
		r.outcome, r.fault = Postponed, &fault.Fault{Class: fault.Retriable, Code: "NotReady", Reason: "not_ready", Err: err}
		return r
	case r.observed < 0 && fault.From(err).Code == fault.CodeResting: // nothing has left
		r.outcome, r.fault = Postponed, fault.From(err)
		return r
	case within.Err() != nil:
		r.fault = faultOf(newRetriableBackendPoolUpdateError(fmt.Errorf("no end within %s: %w", attemptDeadline, err)))
	case r.outcome == Refused:
		r.fault = refusal(err)
		return r
	default:
		r.fault = faultOf(err)
	}
	r.outcome = outcomeOf(r.fault)
	return r
}

// reported is the outcome that people hear of: of a pool of network interfaces they hear that
// Weir does not fill it, however well it is directed.
func (r result) reported(pool lb.PoolID) (Outcome, *fault.Fault) {
	if r.interfaces && r.directed() {
		return Refused, refusal(errInterfaces(pool))
	}
	return r.outcome, r.fault
}

// gaveUpOn is what a pool's change is given up for after an attempt that no other
// follows; empty if it is not.
func (r result) gaveUpOn() string {
	if r.outcome == Retriable || r.outcome == Terminal {
		return errorName(r.fault)
	}
	return ""
}
