// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
)

// attemptDeadline bounds one attempt. What it leaves behind is settled by the next read.
const attemptDeadline = 10 * time.Minute

// errNotReady marks what kept an attempt from starting or from going on before
// anything was written, and is not Azure's: nobody's budget pays for it.
var errNotReady = errors.New("waiting")

// Why a write is not made.
var (
	errLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", errNotReady)
	errUnneeded  = fmt.Errorf("%w: nobody is left to write it for", errNotReady)
)

// result is what an attempt found out.
type result struct {
	outcome  Outcome
	fault    *fault.Fault
	wanted   []lb.Address
	observed int
	foreign  int
	written  []netip.Addr
	// down are the addresses that are Down by us once the pool is level; downed and
	// restored are those that a write makes so, or takes back.
	down, downed, restored []netip.Addr
	// added are the addresses that were not there.
	added []netip.Addr
	// members is true if the write changes which addresses the pool has.
	members bool
	// ledger is what the ledger held; nil if nobody asked it.
	ledger *Recorded
	// lost is the etag that a write was guarded by whose fate is unknown; empty if there
	// is none. wrote is true once the attempt has sent a write itself.
	lost  string
	wrote bool
	// earlier is lost as it was before the last write: after the attempt before, or the first write of this one.
	earlier string
	// kept is an etag that stayed when the pool was written as it was; empty if none did.
	kept string
	// held is what the ledger holds while the attempt writes.
	held Recorded
	// open is true of a pool that shows what it has to while a lost write may land yet: it
	// has the etag that the write is guarded by, and writing it once more has not changed that, or
	// no write is guarded at all.
	open bool
	// suspects is true if a lost write may land while the attempt writes.
	suspects bool
	// unguarded is true of an Azure that heeds no If-Match in writes of pools.
	unguarded bool
	// overtaken is true if somebody else wrote between the read and the write.
	overtaken bool
	// interfaces is true for a pool of network interfaces: the outcome speaks of its admin
	// states, and its membership is refused.
	interfaces bool
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

// try is what an attempt is for, and what it asks on its way.
type try struct {
	ref  Ref
	pool lb.PoolID
	// valid reports whether a write may still start, and needed whether anybody still waits
	// for one.
	valid, needed func() bool
}

// mayWrite asks once more, right before a write: reads and records have taken their time.
func (t try) mayWrite() error {
	switch {
	case !t.valid():
		return errLeaseEnds
	case !t.needed():
		return errUnneeded
	}
	return nil
}

// attempt brings one pool level: it reads the pool, computes what it has to become
// from the newest membership, records what it is about to write, and writes if the
// lease is still valid then.
//
// h is what was remembered of the pool before it.
func (c *Config) attempt(ctx context.Context, t try, h history) result {
	within, cancel := context.WithTimeout(ctx, attemptDeadline)
	defer cancel()
	r := c.begin(h)
	err := c.bringLevel(within, t, &r)
	return r.end(ctx, within, err)
}

// begin returns the result of an attempt that has found out nothing yet.
func (c *Config) begin(h history) result {
	return result{observed: -1, lost: h.lost, earlier: h.lost, kept: h.kept, unguarded: c.Behaviour.PoolIfMatch == behaviour.Ignored}
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

func (c *Config) bringLevel(ctx context.Context, t try, r *result) error {
	before := *r
	observed, err := c.Azure.Get(ctx, t.pool)
	if err != nil {
		return err
	}
	if err = c.writeRead(ctx, t, observed, r); err != nil {
		return c.secondTry(ctx, t, before, r, err)
	}
	return nil
}

// writeRead writes a pool that was read, if it is not level.
func (c *Config) writeRead(ctx context.Context, t try, observed lb.Pool, r *result) error {
	prepare := c.prepare
	if observed.NIC && c.AdminState {
		prepare = c.prepareStates
	}
	todo, write, err := prepare(ctx, t.ref, observed, r)
	if err != nil || !write {
		return err
	}
	if err = t.mayWrite(); err != nil {
		return err
	}
	r.lost, r.wrote = todo.next.Etag, true
	shown, err := c.Azure.Put(ctx, todo.next)
	if err != nil {
		return err
	}
	r.observed = len(shown.Addresses)
	if !todo.shownBy(namedAs(shown, todo.next)) {
		return newRetriableBackendPoolUpdateError(
			fmt.Errorf("pool %s: Azure reported success and shows %d addresses where %d were written, or other admin states",
				observed.ID.Name, len(shown.Addresses), len(todo.next.Addresses)))
	}
	r.fenced(todo, shown.Etag)
	return nil
}

// prepare computes what a pool that was read has to become from the newest membership,
// and records it if that has to be written.
func (c *Config) prepare(ctx context.Context, ref Ref, observed lb.Pool, r *result) (todo change, write bool, err error) {
	r.observed = len(observed.Addresses)
	if observed.NIC {
		r.outcome = Refused
		return todo, false, errInterfaces(observed.ID)
	}
	want, err := c.desired(ref)
	if err != nil {
		return todo, false, err
	}
	recorded := want.Recorded
	r.wanted = want.Addresses
	r.reads(recorded)
	has := c.ours(recorded, observed, want)
	todo = apply(observed, want.Addresses, has)
	r.foreign = todo.foreign
	r.written, r.down = sortedIPs(want.Addresses), sorted(todo.down)
	if !c.AdminState { // nobody takes back what was left Down, and it stays known
		r.down = leftDown(recorded.Down, want.Addresses, observed)
		todo.unseen = todo.unseen || len(r.down) < len(recorded.Down)
	}
	r.downed, r.restored, r.added, r.members = todo.downed, todo.restored, todo.added, todo.add+todo.remove > 0
	if todo.none() {
		r.outcome = Unchanged
		if write, err = r.fence(observed, todo.unseen); err != nil || !write {
			return todo, false, err
		}
	} else {
		r.outcome, r.suspects = Written, r.unguarded && r.lost != ""
	}
	return todo, true, c.record(ctx, ref, r, todo, recorded, has)
}

// desired asks what a pool has to hold. While that is not known nobody's retry pays for it.
func (c *Config) desired(ref Ref) (Desired, error) {
	want, err := c.Cluster.Desired(ref)
	if err != nil {
		return Desired{}, fmt.Errorf("%w: cannot read what is ours: %w", errNotReady, err)
	}
	return want, nil
}

// ours is what the ledger holds, or, when Weir first takes the pool, the addresses that the
// cluster calls ours. What is Down then is somebody else's doing, unless nobody else writes the
// pool, and the node leaves: the BackendPool that had it on record is gone.
func (c *Config) ours(recorded Recorded, observed lb.Pool, want Desired) ours {
	has := ours{written: make(map[netip.Addr]struct{}, len(recorded.Written)+len(want.Addresses))}
	for _, ip := range recorded.Written {
		has.written[ip] = struct{}{}
	}
	if c.AdminState {
		has.down = make(map[netip.Addr]struct{}, len(recorded.Down))
		for _, ip := range recorded.Down {
			has.down[ip] = struct{}{}
		}
	}
	if !recorded.Taken {
		for _, a := range observed.Addresses {
			if want.Ours(a.IP) {
				has.written[a.IP] = struct{}{}
			}
			if c.AdminState && want.Alone && isDown(a) && slices.ContainsFunc(want.Addresses, func(w lb.Address) bool { return w.IP == a.IP && isDown(w) }) {
				has.down[a.IP] = struct{}{}
			}
		}
	}
	return has
}

// leftDown returns those of the addresses that are wanted, and Down in the pool. Of the others
// somebody has taken care; but a write of ours that was to set them so may be on its way.
func leftDown(ips []netip.Addr, wanted []lb.Address, observed lb.Pool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(wanted, func(a lb.Address) bool { return a.IP == ip }) ||
			!slices.ContainsFunc(observed.Addresses, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
}

// record extends the ledger by what is about to be written, unless it holds all of
// it already. A pool that is taken with this write is recorded even if nothing is
// added: what is ours in it then is known now, and may not be after a node has gone.
// The ledger is trimmed after the write, by the report.
func (c *Config) record(ctx context.Context, ref Ref, r *result, todo change, recorded Recorded, has ours) error {
	before := len(has.written)
	for _, a := range r.wanted {
		has.written[a.IP] = struct{}{}
	}
	down := sorted(slices.AppendSeq(slices.Concat(recorded.Down, todo.downed), maps.Keys(has.down)))
	r.held = Recorded{Written: slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare), Down: down}
	if recorded.Taken && len(has.written) == before && len(down) == len(recorded.Down) {
		return nil
	}
	err := c.Ledger.Record(ctx, ref, Intent{
		Written: r.held.Written, Down: down,
		Desired: len(r.wanted), Observed: r.observed, Add: todo.add, Remove: todo.remove, Alter: todo.alter,
	})
	if err != nil {
		return fmt.Errorf("%w: cannot record which addresses are about to be ours: %w", errNotReady, err)
	}
	return nil
}

// sorted returns the addresses in order, each once.
func sorted(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}
