// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// prepare computes what a pool of IP addresses that was read has to become. write says whether
// that has to be written, and intent what the ledger has to hold before; nil if it holds all of
// it already. adminState is false where admin states are left alone.
func (r *result) prepare(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	recorded := want.Recorded
	r.wanted = want.Addresses
	r.reads(recorded)
	has := owned(observed, want, adminState)
	todo := apply(observed, want.Addresses, has)
	r.written, r.down = sortedIPs(want.Addresses), sorted(todo.down)
	if !adminState { // nobody takes back what was left Down, and it stays known
		r.down = leftDown(recorded.Down, want.Addresses, observed)
		todo.unseen = todo.unseen || len(r.down) < len(recorded.Down)
	}
	r.todo, r.members = todo, todo.add+todo.remove > 0
	if write, err = r.mustWrite(observed); !write || err != nil {
		return false, nil, err
	}
	return true, r.record(recorded, has), nil
}

// prepareStates computes which admin states a pool of network interfaces has to have. observed
// has the machine of each interface: by it one is found; in the ledger it goes by its node's
// address.
func (r *result) prepareStates(observed lb.Pool, want Desired) (write bool, intent *Intent, err error) {
	recorded := want.Recorded
	r.todo = direct(observed, want, recorded.Down)
	r.down = sorted(r.todo.down)
	if write, err = r.mustWrite(observed); !write || err != nil {
		return false, nil, err
	}
	down := sorted(slices.Concat(recorded.Down, r.todo.downed))
	r.held.Down = down
	if len(down) == len(recorded.Down) {
		return true, nil, nil
	}
	members := len(observed.Addresses)
	return true, &Intent{Written: recorded.Written, Down: down, Desired: members, Observed: members, Alter: r.todo.alter, States: true}, nil
}

// read takes in that the pool was read. states is true if of a pool of network interfaces the
// admin states are to be written; else it is refused.
func (r *result) read(pool lb.Pool, states bool) error {
	r.observed = len(pool.Addresses)
	switch {
	case pool.NIC && !states:
		r.outcome = Refused
		return errInterfaces(pool.ID)
	case pool.NIC:
		r.interfaces, r.outcome = true, Unchanged
	}
	return nil
}

// leaves reports whether a node leaves or has left, of a pool of network interfaces: nobody is
// asked for their machines where none does.
func (r *result) leaves(want Desired) bool {
	r.reads(want.Recorded)
	r.wanted = want.Addresses
	return len(want.Recorded.Down) > 0 || slices.ContainsFunc(want.Addresses, isDown)
}

// mustWrite reports whether the pool has to be written: because it is not level, or because only
// a write keeps a lost one out.
func (r *result) mustWrite(observed lb.Pool) (bool, error) {
	if r.todo.none() {
		r.outcome = Unchanged
		return r.fence(observed, r.todo.unseen)
	}
	r.outcome, r.suspects = Written, r.unguarded && r.lost != ""
	return true, nil
}

// record returns what the ledger has to hold before the write, unless it holds all of
// it already. A pool that is taken with this write is recorded even if nothing is
// added: what is ours in it then is known now, and may not be after a node has gone.
// The ledger is trimmed after the write, by the report.
func (r *result) record(recorded Recorded, has ours) *Intent {
	before := len(has.written)
	for _, a := range r.wanted {
		has.written[a.IP] = struct{}{}
	}
	down := sorted(slices.AppendSeq(slices.Concat(recorded.Down, r.todo.downed), maps.Keys(has.down)))
	r.held = Recorded{Written: slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare), Down: down}
	if recorded.Taken && len(has.written) == before && len(down) == len(recorded.Down) {
		return nil
	}
	return &Intent{
		Written: r.held.Written, Down: down,
		Desired: len(r.wanted), Observed: r.observed, Add: r.todo.add, Remove: r.todo.remove, Alter: r.todo.alter,
	}
}

// Rehearse returns what an attempt would make of a pool that was read, by what is desired: the
// pool itself if nothing is to be written. adminState is as for an attempt.
func Rehearse(observed lb.Pool, want Desired, adminState bool) (lb.Pool, error) {
	if observed.NIC {
		return observed, errInterfaces(observed.ID)
	}
	return apply(observed, want.Addresses, owned(observed, want, adminState)).next, nil
}
