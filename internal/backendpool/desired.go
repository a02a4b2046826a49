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
		if e := c.statuses.Known(op.Ref); e != nil { // the operation is dropped: as hold does
			e.idle(situation{state: is.State, generation: p.Generation})
		}
		if is.State == Paused { // the clock may have been set back behind its end, which is then to be waited for
			c.Queue(op.Ref)
		}
		return false
	}
	if is.Pool.Key() != op.Pool.Key() {
		return false
	}
	return op.Service == (poolschedule.ServiceName{}) || !is.Removes() && op.Service == is.Service
}

// errHeld says that a BackendPool is not entitled to a write any more.
var errHeld = errors.New("the BackendPool is not entitled to its pool just now")

// Desired implements poolupdate.Cluster. Where the cluster has no answer, because the
// BackendPool went, was paused or became invalid since Relevant was asked, an empty
// set would drain the pool: it says that it does not know.
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
		e.remember(membership.Set{}, situation{state: is.State, generation: p.Generation}) // as hold does
		return none, errHeld
	case is.Removes():
		set := membership.Set{}
		if !is.Deleting { // the Service is gone, as far as is known
			set = keep(c, e, set)
		}
		e.remember(set, situationOf(p, is, set))
		want.Addresses, want.Kept = set.Addresses, set.Kept
		if want.Machines != nil && c.Owner.Made(p) { // a scale set makes machines members that nobody recorded
			want.Ours = c.Cluster.OfThisCluster
		}
	default:
		set, err := membersOf(c, p, e)
		e.remember(set, situationOf(p, is, set))
		if err != nil {
			return none, err
		}
		want.Addresses, want.Kept, want.Twins, want.Awaited, want.Alone = set.Addresses, set.Kept, set.Twins, set.Awaited, c.Owner.Made(p)
		if want.Machines == nil || want.Alone { // of an interface in somebody's pool nobody knows what it is there for
			want.Ours = c.OursIn(p)
		}
	}
	want.Recorded = e.readRecord()
	return want, nil
}
