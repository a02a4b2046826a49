// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Relevant implements poolupdate.Cluster.
func (c *Controller) Relevant(op poolschedule.Operation) bool {
	p := c.Cluster.Pool(op.Ref.Namespace, op.Ref.Name)
	if p == nil || string(p.UID) != op.Ref.UID || !hasFinalizer(p) {
		return false
	}
	is := c.Entitlement(p, time.Now())
	if !is.Works() {
		if e := c.statuses.Known(op.Ref); e != nil { // the operation is dropped, as for a suspended pool
			e.idle(situation{state: is.State, generation: p.Generation})
		}
		if is.State == Paused { // the clock may have been set back to before the pause ends: wait for it again
			c.Queue(op.Ref)
		}
		return false
	}
	if is.Pool.Key() != op.Pool.Key() {
		return false
	}
	return op.Service == (poolschedule.ServiceName{}) || !is.Removes() && op.Service == is.Service
}

// errHeld means the BackendPool may not write to its pool now.
var errHeld = errors.New("the BackendPool is not entitled to its pool just now")

// Desired implements poolupdate.Cluster. If the BackendPool was deleted, paused or became invalid since
// Relevant, it returns an error: an empty set would drain the pool.
func (c *Controller) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	none := poolwrite.Desired{}
	e, p := c.known(ref)
	if p == nil {
		return none, ErrGone
	}
	want := poolwrite.Desired{
		Ours: func(netip.Addr) bool { return false },
		AddressOf: func(machine string) (netip.Addr, bool) {
			return c.Cluster.AddressOf(machine, lb.Family(p.Spec.IPFamily))
		},
	}
	if c.Owner.ByMachine(p) {
		want.Machines = &poolwrite.Machines{
			Family: lb.Family(p.Spec.IPFamily), Configuration: c.Cluster.ConfigurationOf(p), Every: p.Spec.Nodes != nil, Of: c.Cluster.MachineOf,
		}
	}
	is := c.Entitlement(p, time.Now())
	switch {
	case !is.Works():
		e.remember(membership.Set{}, situation{state: is.State, generation: p.Generation}) // as for a suspended pool
		return none, errHeld
	case is.Removes():
		set := membership.Set{}
		if !is.Deleting { // the Service may still exist
			set = keep(c, e, set)
		}
		e.remember(set, situationOf(p, is, set))
		want.Addresses, want.Kept = set.Addresses, set.Kept
		if want.Machines != nil && c.Owner.Made(p) { // a scale set adds machines that no record lists
			want.Ours = c.Cluster.OfThisCluster
		}
	default:
		set, err := membersOf(c, p, e)
		e.remember(set, situationOf(p, is, set))
		if err != nil {
			return none, err
		}
		want.Addresses, want.Kept, want.Twins, want.Awaited, want.Alone = set.Addresses, set.Kept, set.Twins, set.Awaited, c.Owner.Made(p)
		if want.Machines == nil || want.Alone { // an interface in a pool of the user may have another purpose
			want.Ours = c.OursIn(p)
		}
	}
	want.Recorded = e.readRecord()
	return want, nil
}
