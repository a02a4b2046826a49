// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// situation is what an operation was queued for, or an attempt found. While it is the
// same, reconciling again queues nothing: our own status writes and timers cause no
// calls to Azure. The zero value is like no other.
type situation struct {
	state      state
	deleting   bool
	generation int64
	serviceUID types.UID
	// members tells the memberships of a pool of nodes apart. Those of a Service's
	// pool are the Service reconciler's.
	members uint64
}

// situationOf returns the situation of a BackendPool with these members.
func situationOf(p *v1alpha1.BackendPool, st standing, set membership.Set) situation {
	now := situation{state: st.state, deleting: st.deleting, generation: p.Generation, serviceUID: st.serviceUID}
	if p.Spec.Nodes != nil && !st.removes() {
		now.members = membership.Fingerprint(set.Addresses)
	}
	return now
}

// reconcilePool brings a BackendPool into the state that it is entitled to.
func (c *Cluster) reconcilePool(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := c.snap.poolNamed(req.Namespace, req.Name)
	uid := ""
	if p != nil {
		uid = string(p.UID)
	}
	for _, e := range c.statuses.drop(req.Namespace, req.Name, uid) {
		c.forgetUnclaimed(e)
	}
	if p == nil {
		return reconcile.Result{}, nil
	}
	e, err := c.statuses.load(ctx, refOf(p))
	if err == nil {
		e.wakes(p.Generation, time.Now())
		err = c.statuses.flush(ctx, e)
	}
	if err != nil {
		return outcome(ctx, err, 0)
	}
	st := c.snap.standingOf(p)
	e.pointsAt(st.pool)
	c.recordMade(p, e)
	switch {
	case st.deleting:
		if !e.isReleased() {
			c.leaveFor(p)
		}
		err = c.release(ctx, p, e, st)
	case st.state == stateActive:
		err = c.fill(ctx, p, e, st)
	case st.state == stateServiceGone && e.isReleased(): // it goes with its pool, which is gone: no complaint
	case st.state == stateServiceGone:
		err = c.drain(ctx, p, e, st)
	default:
		err = c.hold(ctx, p, e, st)
	}
	return outcome(ctx, err, e.wait(time.Now()))
}

// fill has the pool hold its members.
func (c *Cluster) fill(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing) error {
	if !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) {
		e.idle(situation{})                 // without it operations were dropped
		return c.setFinalizer(ctx, p, true) // its event comes back here
	}
	set, err := c.snap.members(p)
	if err != nil {
		return err
	}
	now := situationOf(p, st, set)
	err = c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p)
		settlePlanned(s)
		switch {
		case slices.Contains(attempted, syncedReason(s.Conditions)):
		case s.LastOutcome == nil:
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionUnknown, v1alpha1.ReasonPending,
				"nothing has been read from Azure yet")
		default:
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionUnknown, v1alpha1.ReasonUpdating,
				"the pool is read again, and written where it has to be")
		}
	})
	if err != nil {
		return err
	}
	changed := e.changed(now)
	if e.due(now, time.Now()) {
		return c.bringLevel(ctx, p, e, st, changed)
	}
	return c.relevelIf(ctx, p, e, st, set)
}

// relevelIf is relevel for a pool of nodes: those of a Service are relevelled by
// the reconciler of the Service.
func (c *Cluster) relevelIf(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing, set membership.Set) error {
	if p.Spec.Nodes != nil {
		c.tellSpared(p, e, st, set)
	}
	if p.Spec.Nodes == nil || !c.lanes.LevelAs(st.pool, membership.Fingerprint(set.Addresses)) {
		return nil
	}
	return c.relevel(ctx, p, e, set)
}

// attempted are the reasons that come from attempts: they stand until the next one.
var attempted = []string{
	v1alpha1.ReasonLevel, v1alpha1.ReasonUpdating, v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed,
	v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonNICPool,
}

// unlevel are those of them that say that an attempt failed.
var unlevel = []string{v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed}

// drain takes our addresses out of a pool whose Service is gone.
func (c *Cluster) drain(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing) error {
	left := st.taken && e.holds()
	if left && !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) {
		e.idle(situation{})
		return c.setFinalizer(ctx, p, true)
	}
	now := situationOf(p, st, membership.Set{})
	if left && !e.due(now, time.Now()) {
		return nil
	}
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p)
		settlePlanned(s)
		if left && slices.Contains(unlevel, syncedReason(s.Conditions)) {
			return // what the last attempt met stays in sight until the next
		}
		if !left {
			rests(s, p.Generation, time.Now())
		}
		reason, why := removed(st, left)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, why)
	})
	if left {
		c.remove(e, st)
	} else {
		e.idle(now)
	}
	return err
}

// remove queues the operation that takes our addresses out; nobody is told of it.
func (c *Cluster) remove(e *entry, st standing) {
	now := time.Now()
	e.again(now.Add(c.opts.ReleaseAgainAfter))
	c.lanes.Add(poolupdate.Operation{Ref: e.ref, Pool: st.pool, ChangedAt: now, NotBefore: e.notBefore})
}

// hold leaves the pool as it is and says why.
func (c *Cluster) hold(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing) error {
	e.idle(situation{state: st.state, generation: p.Generation})
	c.lanes.Drop(e.ref)
	status := metav1.ConditionFalse
	if st.state == statePaused || st.state == stateDryRun || st.reason == v1alpha1.ReasonPending {
		status = metav1.ConditionUnknown
	}
	return c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p)
		rests(s, p.Generation, time.Now())
		if st.state != stateDryRun {
			settlePlanned(s)
		}
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, status, st.reason, st.why)
	})
}

// settleConditions sets the conditions that no attempt decides.
func settleConditions(s *v1alpha1.BackendPoolStatus, p *v1alpha1.BackendPool) {
	if parkedFor(s) == "" {
		rests(s, p.Generation, time.Now())
	}
	if p.Spec.Paused {
		setCondition(s, p.Generation, v1alpha1.ConditionPaused, metav1.ConditionTrue, "Paused", "spec.paused is set")
	} else {
		setCondition(s, p.Generation, v1alpha1.ConditionPaused, metav1.ConditionFalse, "NotPaused", "")
	}
}

// poolAndRivals maps a BackendPool to itself and to the others that name its pool:
// who holds the pool may change for them too.
func (c *Cluster) poolAndRivals(_ context.Context, obj client.Object) []reconcile.Request {
	requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	p, ok := obj.(*v1alpha1.BackendPool)
	if !ok {
		return requests
	}
	if id, err := c.snap.place.of(p); err == nil {
		for _, rival := range c.snap.poolsAt(id.Key()) {
			if rival.Name != p.Name || rival.Namespace != p.Namespace {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rival)})
			}
		}
	}
	return requests
}

// poolChanged drops updates of the status, which are our own.
func poolChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, after := u.ObjectOld, u.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	}}
}

// forgetUnclaimed drops what the lanes remember of a pool that nobody names any more.
func (c *Cluster) forgetUnclaimed(e *entry) {
	e.mu.Lock()
	pool := e.pool
	e.mu.Unlock()
	if pool != (lb.PoolID{}) && len(c.snap.poolsAt(pool.Key())) == 0 {
		c.lanes.Forget(pool)
	}
}

func (e *entry) pointsAt(pool lb.PoolID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pool = pool
}

// due reports whether an operation has to be queued: the situation is a new one, or
// the time to look again has come.
func (e *entry) due(s situation, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == e.acted && (e.recheckAt.IsZero() || now.Before(e.recheckAt)) {
		return false
	}
	e.acted, e.recheckAt = s, time.Time{}
	return true
}

// changed reports whether the situation is known to be another one than before. Of that in
// which an earlier process left a pool nothing is known.
func (e *entry) changed(s situation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s != e.acted && (e.acted != situation{} || e.status.PoolID == "" && e.status.LastOutcome == nil)
}

// idle notes a situation in which nothing is queued.
func (e *entry) idle(s situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acted, e.recheckAt = s, time.Time{}
}

// again sets when to look again.
func (e *entry) again(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recheckAt = at
}

// wait returns how long until it is time to look again, or to say that the pool is not
// parked any more; 0 for never.
func (e *entry) wait(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := restsUntil(&e.status)
	if !e.recheckAt.IsZero() && (next.IsZero() || e.recheckAt.Before(next)) {
		next = e.recheckAt
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}
