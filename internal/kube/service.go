// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// reconcileService queues an operation for each pool of a Service that is not known to
// be level. It calls nobody but the lanes, and writes no more than a message.
func (c *Cluster) reconcileService(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name := poolupdate.ServiceName{Namespace: req.Namespace, Name: req.Name}
	log := c.opts.Log.With("service", req.String())
	if s := c.snap.service(name); s == nil || s.DeletionTimestamp != nil {
		if n := c.lanes.RemoveService(name); n > 0 {
			log.DebugContext(ctx, "operations of a Service that is gone were dropped", "operations", n)
		}
	}
	var failed []error
	for _, p := range c.snap.poolsOf(name) {
		// A BackendPool that its own reconciler has not seen yet gets its first
		// operation from there.
		e := c.statuses.known(refOf(p))
		if e == nil || !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) {
			continue
		}
		st := c.snap.standingOf(p)
		if st.state != stateActive || st.deleting {
			log.DebugContext(ctx, "endpoints change nothing", "backendPool", p.Name, "why", st.why)
			continue
		}
		if err := c.bringLevel(ctx, p, e, st, true); err != nil && !errors.Is(err, errGone) {
			failed = append(failed, fmt.Errorf("BackendPool %s: %w", p.Name, err))
		}
	}
	return outcome(ctx, errors.Join(failed...), 0)
}

// bringLevel queues an operation, unless the pool is known to hold its members.
func (c *Cluster) bringLevel(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing, changed bool) error {
	set, err := c.snap.members(p)
	if err != nil {
		return err
	}
	c.tellSpared(p, e, st, set)
	log := c.opts.Log.With("backendPool", key(p.Namespace, p.Name), "members", len(set.Addresses))
	if set.Homeless > 0 || set.Unfit > 0 {
		log.DebugContext(ctx, "some endpoints make no node a member", "withoutNode", set.Homeless, "slicesWithoutIPs", set.Unfit)
	}
	// The lanes may know the pool from before a pause or from another BackendPool, so
	// they are believed only where the status says the same.
	if e.reason() == v1alpha1.ReasonLevel && c.lanes.LevelAs(st.pool, membership.Fingerprint(set.Addresses)) {
		log.DebugContext(ctx, "level already")
		return c.relevel(ctx, p, e, set)
	}
	op := poolupdate.Operation{
		Ref: refOf(p), Pool: st.pool, Service: st.service, NotBefore: e.notBefore,
		Told: e.recalled(st.service.Name), New: c.isNew(p, e, st),
	}
	if changed {
		op.ChangedAt = time.Now()
	}
	c.lanes.Add(e.operations(op, set)...)
	if e.wants(len(set.Addresses)) {
		c.wake.add(e.ref)
	}
	return nil
}

// operations returns what has to be queued: the operation, and ahead of it one for the admin
// states if others are to be Down than are on record. Where nothing else differs that one
// does all.
func (e *entry) operations(op poolupdate.Operation, set membership.Set) []poolupdate.Operation {
	e.mu.Lock()
	defer e.mu.Unlock()
	var shall, are []string
	for _, d := range set.Draining {
		shall = append(shall, d.IP.String())
	}
	for _, d := range e.status.Down {
		are = append(are, d.Address)
	}
	slices.Sort(shall)
	slices.Sort(are)
	if slices.Equal(shall, are) {
		return []poolupdate.Operation{op}
	}
	admin := op
	admin.Admin, admin.Stake = true, stakeOf(set, shall, are)
	if op.ChangedAt.IsZero() { // they left, or came back, while nobody looked: the members may have changed, too
		return []poolupdate.Operation{admin, op}
	}
	members := make([]string, len(set.Addresses))
	for i, a := range set.Addresses {
		members[i] = a.IP.String()
	}
	slices.Sort(members)
	if slices.Equal(members, slices.Sorted(slices.Values(e.status.WrittenAddresses))) {
		return []poolupdate.Operation{admin}
	}
	return []poolupdate.Operation{admin, op}
}

// stakeOf counts what a change of admin states is about: shall are the members that are to be
// Down, are those on record as Down. Both are sorted.
func stakeOf(set membership.Set, shall, are []string) poolupdate.Stake {
	var stake poolupdate.Stake
	for _, a := range set.Addresses {
		ip := a.IP.String()
		_, leaves := slices.BinarySearch(shall, ip)
		_, down := slices.BinarySearch(are, ip)
		switch {
		case leaves && !down:
			stake.Leaves++
		case down && !leaves:
			stake.Returns++
		case !leaves:
			stake.Stays++
		}
	}
	return stake
}

// wants keeps the wanted number of members current while a pool is not level, and reports
// whether it is another one. For one that was, the attempt that follows says it.
func (e *entry) wants(members int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if syncedReason(e.status.Conditions) == v1alpha1.ReasonLevel {
		return false
	}
	before := e.revision
	e.amend(func(s *v1alpha1.BackendPoolStatus) {
		s.Desired = new(int32(members)) //nolint:gosec // a pool has at most some thousands
	})
	return e.revision != before
}

// relevel corrects what a level pool says about nodes that are left out, and about why those
// are Down that are.
func (c *Cluster) relevel(ctx context.Context, p *v1alpha1.BackendPool, e *entry, set membership.Set) error {
	return c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		if syncedReason(s.Conditions) == v1alpha1.ReasonLevel {
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonLevel, levelMessage(set))
			setDown(s, downIn(s.Down), set, metav1.Now())
		}
	})
}

// boundService maps a Service to itself, if a BackendPool refers to it.
func (c *Cluster) boundService(_ context.Context, obj client.Object) []reconcile.Request {
	return c.ifBound(poolupdate.ServiceName{Namespace: obj.GetNamespace(), Name: obj.GetName()})
}

// poolsOfService maps a Service to the BackendPools that refer to it, and to those of its pools.
func (c *Cluster) poolsOfService(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range c.snap.poolsOf(poolupdate.ServiceName{Namespace: obj.GetNamespace(), Name: obj.GetName()}) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	}
	if s, ok := obj.(*corev1.Service); ok {
		for _, p := range c.poolsAtOf(s) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// serviceChanged drops updates that leave a Service as fit for a pool as it was.
func serviceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Service)
		after, ok2 := u.ObjectNew.(*corev1.Service)
		return ok1 && ok2 && (before.UID != after.UID || before.Spec.Type != after.Spec.Type ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || dryRun(before) != dryRun(after))
	}}
}
