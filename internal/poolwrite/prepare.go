// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Prepare computes what a pool of IP addresses that was read has to become. write says whether
// that has to be written, and intent what the ledger has to hold before; nil if it holds all of
// it already. adminState is false where admin states are left alone.
func (r *Result) Prepare(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	want = want.in(observed.Addresses)
	recorded := want.Recorded
	r.Wanted = want.Addresses
	r.reads(recorded)
	has := owned(observed, want, adminState)
	todo := apply(observed, want.Addresses, has)
	r.written, r.down = sortedIPs(want.Addresses), sorted(todo.down)
	if !adminState { // nobody takes back what was left Down, and it stays known
		r.down = leftDown(recorded.Down, want.Addresses, observed)
		todo.unseen = todo.unseen || len(r.down) < len(recorded.Down)
	}
	r.Todo, r.Members = todo, todo.add+todo.remove > 0
	if write, err = r.mustWrite(observed); !write || err != nil {
		return false, nil, err
	}
	return true, r.record(recorded, has), nil
}

// PrepareStates computes which admin states a pool of network interfaces has to have. observed
// has the machine of each interface: by it one is found; in the ledger it goes by its node's
// address.
func (r *Result) PrepareStates(observed lb.Pool, want Desired) (write bool, intent *Intent, err error) {
	recorded := want.Recorded
	r.Todo = direct(observed, want, recorded.Down)
	r.down = sorted(r.Todo.down)
	if write, err = r.mustWrite(observed); !write || err != nil {
		return false, nil, err
	}
	down := sorted(slices.Concat(recorded.Down, r.Todo.Downed))
	r.held.Down = down
	if len(down) == len(recorded.Down) {
		return true, nil, nil
	}
	members := len(observed.Addresses)
	return true, &Intent{Written: recorded.Written, Down: down, Instances: recorded.Instances, Desired: members, Observed: members, Alter: r.Todo.alter, States: true}, nil
}

// Read takes in that the pool was read. states is true if of a pool of network interfaces the
// admin states are to be written; else it is refused.
func (r *Result) Read(pool lb.Pool, states bool) error {
	r.Observed = len(pool.Addresses)
	switch {
	case pool.NIC && !states:
		r.Outcome = Refused
		return errInterfaces(pool.ID)
	case pool.NIC:
		r.Interfaces, r.Outcome = true, Unchanged
	}
	return nil
}

// Leaves reports whether a node leaves or has left, of a pool of network interfaces: nobody is
// asked for their machines where none does.
func (r *Result) Leaves(want Desired) bool {
	r.reads(want.Recorded)
	r.Wanted = want.Addresses
	return len(want.Recorded.Down) > 0 || slices.ContainsFunc(want.Addresses, isDown)
}

// mustWrite reports whether the pool has to be written: because it is not level, or because only
// a write keeps a lost one out.
func (r *Result) mustWrite(observed lb.Pool) (bool, error) {
	if r.Todo.none() {
		r.Outcome = Unchanged
		return r.fence(observed, r.Todo.unseen)
	}
	r.Outcome, r.suspects = Written, r.unguarded && r.lost != ""
	return true, nil
}

// record returns what the ledger has to hold before the write, unless it holds all of
// it already. A pool that is taken with this write is recorded even if nothing is
// added: what is ours in it then is known now, and may not be after a node has gone.
// The ledger is trimmed after the write, by the report.
func (r *Result) record(recorded Recorded, has ours) *Intent {
	before := len(has.written)
	for _, a := range r.Wanted {
		has.written[a.IP] = struct{}{}
	}
	instances := maps.Clone(recorded.Instances)
	for machine, ip := range r.instances {
		if instances == nil {
			instances = map[string]netip.Addr{}
		}
		instances[machine] = ip
	}
	down := sorted(slices.AppendSeq(slices.Concat(recorded.Down, r.Todo.Downed), maps.Keys(has.down)))
	r.held = Recorded{Written: slices.SortedFunc(maps.Keys(has.written), netip.Addr.Compare), Down: down, Instances: instances}
	if recorded.Taken && len(has.written) == before && len(down) == len(recorded.Down) && maps.Equal(instances, recorded.Instances) {
		return nil
	}
	return &Intent{
		Written: r.held.Written, Down: down, Instances: instances,
		Desired: len(r.Wanted), Observed: r.Observed, Add: r.Todo.add, Remove: r.Todo.remove, Alter: r.Todo.alter,
	}
}

// Rehearse returns what an attempt would make of a pool that was read, by what is desired: the
// pool itself if nothing is to be written. adminState is as for an attempt.
func Rehearse(observed lb.Pool, want Desired, adminState bool) (lb.Pool, error) {
	switch {
	case want.Machines != nil:
		return observed, fmt.Errorf("pool %s: its members are network interfaces, and which of these join or leave is not rehearsed", observed.ID.Name)
	case observed.NIC:
		return observed, errInterfaces(observed.ID)
	}
	want = want.in(observed.Addresses)
	return apply(observed, want.Addresses, owned(observed, want, adminState)).Next, nil
}
