// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"net/netip"
	"time"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// IsNeeded implements updater.Cluster.
func (c *Controller) IsNeeded(op schedule.Operation) bool {
	p := c.Cluster.Pool(op.Ref.Namespace, op.Ref.Name)
	if p == nil || string(p.UID) != op.Ref.UID || !hasFinalizer(p) {
		return false
	}
	binding := c.ResolveBinding(p, time.Now())
	if !binding.AllowsUpdates() {
		if e := c.statuses.GetEntry(op.Ref); e != nil { // the operation is dropped, as for a suspended pool
			e.setIdleInput(operationInput{state: binding.State, generation: p.Generation})
		}
		if binding.State == Paused { // the clock may have been set back to before the pause ends: wait for it again
			c.Queue(op.Ref)
		}
		return false
	}
	if binding.Pool.Key() != op.Pool.Key() {
		return false
	}
	return op.Service == (schedule.ServiceName{}) || !binding.RemovesMembers() && op.Service == binding.Service
}

// errUpdateNotAllowed means the BackendPool may not write to its pool now.
var errUpdateNotAllowed = errors.New("the BackendPool is not entitled to its pool just now")

// DesiredPool implements updater.Cluster. If the BackendPool was deleted, paused or became invalid after
// IsNeeded, it returns an error: an empty set would drain the pool.
func (c *Controller) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	none := diff.Desired{}
	e, p := c.lookupEntry(ref)
	if p == nil {
		return none, metadata.ErrDeleted
	}
	want := diff.Desired{
		IsOwnAddress: func(netip.Addr) bool { return false },
		AddressOf: func(machine string) (netip.Addr, bool) {
			return c.Cluster.AddressOf(machine, lb.Family(p.Spec.IPFamily))
		},
	}
	if c.Owner.UsesInterfaces(p) {
		want.Machines = &diff.Machines{
			Family: lb.Family(p.Spec.IPFamily), Configuration: c.Cluster.ConfigurationOf(p), Every: p.Spec.Nodes != nil, Lookup: c.Cluster.MachineOf,
		}
	}
	if want.Machines == nil && !c.Owner.IsCreatedByWeir(p) { // other clusters may share the pool
		want.ClusterMark = diff.ClusterMark(c.Cluster.UID())
	}
	binding := c.ResolveBinding(p, time.Now())
	switch {
	case !binding.AllowsUpdates():
		e.recordInput(membership.Set{}, operationInput{state: binding.State, generation: p.Generation}) // as for a suspended pool
		return none, errUpdateNotAllowed
	case binding.RemovesMembers():
		set := membership.Set{}
		if !binding.Deleting { // the Service may still exist
			set = retainMembers(c, e, set)
		}
		e.recordInput(set, newOperationInput(p, binding, set))
		e.limitShown(set)
		want.Addresses, want.Retained = set.Addresses, set.Retained
		if want.Machines != nil && c.Owner.IsCreatedByWeir(p) { // a scale set adds machines that no record lists
			want.IsOwnAddress = c.Cluster.IsNodeAddress
		}
	default:
		set, err := membersOf(c, p, e)
		e.recordInput(set, newOperationInput(p, binding, set))
		if err != nil {
			return none, err
		}
		e.limitShown(set)
		want.Addresses, want.Retained, want.SharedAddresses, want.UnresolvedIPs, want.IsExclusive = set.Addresses, set.Retained, set.Alternates, set.PendingAddresses, c.Owner.IsCreatedByWeir(p)
		if want.Machines == nil || want.IsExclusive { // an interface in a pool of the user may have another purpose
			want.IsOwnAddress = c.ManagedAddresses(p)
		}
	}
	want.Record = e.readRecord()
	return want, nil
}
