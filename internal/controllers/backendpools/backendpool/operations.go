// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// EndpointsChanged queues an operation for each pool of a Service that is not in sync. It calls only the pool
// updater and writes at most one log message.
func (c *Controller) EndpointsChanged(ctx context.Context, name schedule.ServiceName, now time.Time) error {
	log := c.Log.With("service", objectKey(name.Namespace, name.Name))
	if s, ok := c.Cluster.Service(name); !ok || s.Deleting {
		if n := c.Workers.RemoveService(name); n > 0 {
			log.DebugContext(ctx, "operations of a deleted Service were dropped", "operations", n)
		}
	}
	var failed []error
	for _, p := range c.Cluster.PoolsOf(name) {
		// Its first reconciliation queues the first operation.
		e := c.statuses.GetEntry(RefOf(p))
		if e == nil || !hasFinalizer(p) {
			continue
		}
		binding := c.ResolveBinding(p, now)
		if binding.State != Active || binding.Deleting {
			log.DebugContext(ctx, "endpoints change nothing", "backendPool", p.Name, "why", binding.Message)
			continue
		}
		if err := c.queueIfNeeded(ctx, p, e, binding, true, now); err != nil && !isDeleted(err) {
			failed = append(failed, fmt.Errorf("BackendPool %s: %w", p.Name, err))
		}
	}
	return errors.Join(failed...)
}

// queueIfNeeded queues an operation unless the pool is known to be in sync.
func (c *Controller) queueIfNeeded(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, changed bool, now time.Time) error {
	set, err := membersOf(c, p, e)
	if err != nil {
		return err
	}
	c.notifyRetainedMembers(p, e, binding, set)
	log := c.Log.With("backendPool", objectKey(p.Namespace, p.Name), "members", len(set.Addresses))
	if set.EndpointsWithoutNode > 0 || set.UnsupportedSlices > 0 {
		log.DebugContext(ctx, "some endpoints make no node a member", "withoutNode", set.EndpointsWithoutNode, "slicesWithoutIPs", set.UnsupportedSlices)
	}
	// The updater may know the pool from before a pause or for another BackendPool: trust it only if the
	// status agrees.
	if e.currentReason() == v1alpha1.ReasonInSync && c.Workers.IsInSync(binding.Pool, set.Fingerprint()) {
		log.DebugContext(ctx, "in sync already")
		if changed && e.timeToNextCheck(now) > 0 {
			c.Queue(e.ref) // no attempt follows, and only a reconciliation sets the timer
		}
		return c.refreshSyncedStatus(ctx, p, e, set)
	}
	op := schedule.Operation{
		Ref: e.ref, Pool: binding.Pool, Service: binding.Service, NotBefore: e.notBefore,
		LastNotification: e.lastNotification(binding.Service.Name), FillsPool: c.isNew(p, e, binding),
	}
	if changed {
		op.ChangedAt = now
	}
	op.Exempt = isExempt(c, p, e)
	op.OutOfSync = !changed && (slices.Contains(unfinishedReasons, e.currentReason()) || hasMemberDiff(e, set))
	c.Workers.Add(e.newOperations(op, set)...)
	if updateDesiredCount(e, len(set.Addresses), now) {
		c.Queue(e.ref)
	}
	return nil
}

// membersOf returns the nodes that belong in a pool, including retained ones.
func membersOf(c *Controller, p *v1alpha1.BackendPool, e *Entry) (membership.Set, error) {
	set, err := c.Cluster.Members(p)
	if err != nil {
		return set, err
	}
	return retainMembers(c, e, set), nil
}

// retainMembers adds retained members and schedules a recheck for when the next one expires.
func retainMembers(c *Controller, e *Entry, set membership.Set) membership.Set {
	set, recheckAt := c.Retention.RetainMembers(e.ref, set, func() membership.MemberRecord { return memberRecord(e) }, time.Now())
	if !recheckAt.IsZero() {
		e.scheduleCheck(recheckAt)
	}
	return set
}

func memberRecord(e *Entry) membership.MemberRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return RecordOf(&e.status)
}

// MembersOf returns Cluster.Members plus the retained members.
func MembersOf(c *Controller, p *v1alpha1.BackendPool) (membership.Set, error) {
	if e := c.statuses.GetEntry(RefOf(p)); e != nil {
		return membersOf(c, p, e)
	}
	return c.Cluster.Members(p)
}

// unfinishedReasons are the reasons of a pool that an earlier process did not bring in sync: the record may be ahead
// of Azure.
var unfinishedReasons = []string{v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonRetrying}

func hasMemberDiff(e *Entry, set membership.Set) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(set.Addresses) != len(e.status.WrittenAddresses) {
		return true
	}
	for _, a := range set.Addresses {
		if !slices.Contains(e.status.WrittenAddresses, a.IP.String()) {
			return true
		}
	}
	return false
}

// isNew reports whether Weir has just created the pool and not yet written to it.
func (c *Controller) isNew(p *v1alpha1.BackendPool, e *Entry, binding Binding) bool {
	return c.Owner.IsCreatedByWeir(p) && (!binding.HasRecord || e.IsPoolMissing())
}

// isExempt reports whether a change bypasses the namespace's share: a member no longer has a node, or Weir
// created the BackendPool for nodes.
func isExempt(c *Controller, p *v1alpha1.BackendPool, e *Entry) bool {
	if p.Spec.Nodes != nil && c.Owner.IsCreatedByWeir(p) {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.status.WrittenAddresses, func(address string) bool {
		ip, err := netip.ParseAddr(address)
		return err == nil && !c.Cluster.IsNodeAddress(ip)
	})
}

// newOperations returns the operations to queue. If the Down members differ from the record, an admin state
// operation comes first; it is the only one if nothing else differs.
func (e *Entry) newOperations(op schedule.Operation, set membership.Set) []schedule.Operation {
	e.mu.Lock()
	defer e.mu.Unlock()
	var desired, recorded []string
	for _, d := range set.Draining {
		desired = append(desired, d.IP.String())
	}
	for _, d := range e.status.Down {
		recorded = append(recorded, d.Address)
	}
	slices.Sort(desired)
	slices.Sort(recorded)
	op.Impact = ImpactOfChange(set, e.status.WrittenAddresses)
	if slices.Equal(desired, recorded) {
		return []schedule.Operation{op}
	}
	admin := op
	admin.Admin, admin.Impact = true, ImpactOfStates(set, desired, recorded)
	if op.ChangedAt.IsZero() { // changed while no process was watching: the members may differ too
		return []schedule.Operation{admin, op}
	}
	ips := make([]string, len(set.Addresses))
	for i, a := range set.Addresses {
		ips[i] = a.IP.String()
	}
	slices.Sort(ips)
	if slices.Equal(ips, slices.Sorted(slices.Values(e.status.WrittenAddresses))) {
		return []schedule.Operation{admin}
	}
	return []schedule.Operation{admin, op}
}

// updateDesiredCount updates the desired count while the pool is not in sync, and reports whether it changed. Otherwise
// the next attempt sets it.
func updateDesiredCount(e *Entry, members int, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if syncedReason(e.status.Conditions) == v1alpha1.ReasonInSync {
		return false
	}
	return e.changeStatusLater(now, func(s *v1alpha1.BackendPoolStatus) {
		s.Desired = new(int32(members)) //nolint:gosec // a pool has at most some thousands
	})
}

// refreshSyncedStatus updates the message and the Down reasons of a pool that is in sync.
func (c *Controller) refreshSyncedStatus(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, set membership.Set) error {
	usable := WithoutUnusable(set, UnusableNodes(e))
	return c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		if syncedReason(s.Conditions) == v1alpha1.ReasonInSync {
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonInSync, InSyncMessage(usable))
			SetDown(s, ParseDown(s.Down), set, metav1.Now())
		}
	})
}
