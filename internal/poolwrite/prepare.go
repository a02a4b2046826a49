// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Prepare computes the write of a pool of IP addresses. intent is what to record first, or nil.
// Without adminState, admin states are not managed.
func (r *Result) Prepare(observed lb.Pool, want Desired, adminState bool) (write bool, intent *Intent, err error) {
	want = want.in(observed.Addresses)
	recorded := want.Recorded
	r.Wanted = want.Addresses
	r.reads(recorded)
	managed := owned(observed, want, adminState)
	todo := apply(observed, want.Addresses, managed)
	r.written, r.down = sortedIPs(want.Addresses), sorted(todo.down)
	if !adminState { // Down states are not reset, and stay recorded
		r.down = leftDown(recorded.Down, want.Addresses, observed)
		todo.unseen = todo.unseen || len(r.down) < len(recorded.Down)
	}
	r.Todo, r.Members = todo, todo.add+todo.remove > 0
	if write, err = r.mustWrite(observed); !write || err != nil {
		return false, nil, err
	}
	return true, r.record(recorded, managed), nil
}

// PrepareStates computes the admin states of a pool of network interfaces. observed must have the
// machine of each.
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

// Read processes a pool that was read. A pool of network interfaces is refused unless states, their
// admin states, are managed.
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

// Leaves reports whether nodes of a pool of network interfaces leave or have left. Only then are
// machines read.
func (r *Result) Leaves(want Desired) bool {
	r.reads(want.Recorded)
	r.Wanted = want.Addresses
	return len(want.Recorded.Down) > 0 || slices.ContainsFunc(want.Addresses, isDown)
}

// mustWrite reports whether the pool is out of sync, or a lost write has to be invalidated.
func (r *Result) mustWrite(observed lb.Pool) (bool, error) {
	if r.Todo.none() {
		r.Outcome = Unchanged
		return r.fence(observed, r.Todo.unseen)
	}
	r.Outcome, r.suspects = Written, r.unguarded && r.lost != ""
	return true, nil
}

// record returns what to record before the write, or nil. A takeover is always recorded: which
// addresses are managed may be unknown once a node was deleted. The report trims the record.
func (r *Result) record(recorded Recorded, managed ours) *Intent {
	before := len(managed.written)
	for _, a := range r.Wanted {
		managed.written[a.IP] = struct{}{}
	}
	instances := maps.Clone(recorded.Instances)
	for machine, ip := range r.instances {
		if instances == nil {
			instances = map[string]netip.Addr{}
		}
		instances[machine] = ip
	}
	down := sorted(slices.AppendSeq(slices.Concat(recorded.Down, r.Todo.Downed), maps.Keys(managed.down)))
	r.held = Recorded{Written: slices.SortedFunc(maps.Keys(managed.written), netip.Addr.Compare), Down: down, Instances: instances}
	if recorded.Taken && len(managed.written) == before && len(down) == len(recorded.Down) && maps.Equal(instances, recorded.Instances) {
		return nil
	}
	return &Intent{
		Written: r.held.Written, Down: down, Instances: instances,
		Desired: len(r.Wanted), Observed: r.Observed, Add: r.Todo.add, Remove: r.Todo.remove, Alter: r.Todo.alter,
	}
}

// Rehearse returns the pool that an attempt would write, or observed.
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
