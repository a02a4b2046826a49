// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// Config configures a Controller.
type Config struct {
	Cluster Cluster
	Owner   Owner
	// Workers must be set before the first Reconcile.
	Workers Workers
	Events  Events
	// Queue requests a reconciliation of a BackendPool. It does not block.
	Queue func(ref schedule.Ref)
	Log   *slog.Logger
	// RecheckInterval is the delay before a pool is read again that did not exist or contained network
	// interfaces.
	RecheckInterval time.Duration
	// ReleaseRetryInterval is the delay before a failed removal of addresses is retried.
	ReleaseRetryInterval time.Duration
	// MembersShown is called after an attempt that read the members of a pool; nil keeps no record of them. It does not
	// block.
	MembersShown func(ref schedule.Ref)
	// Retention decides which members are retained.
	Retention *RetentionPolicy
}

// Controller reconciles BackendPools. It implements updater's Cluster, StatusStore and Reporter; those methods are safe
// for concurrent use.
type Controller struct {
	Config
	statuses *Statuses
	retained retainedRecords
}

var (
	_ updater.Cluster     = (*Controller)(nil)
	_ updater.StatusStore = (*Controller)(nil)
	_ updater.Reporter    = (*Controller)(nil)
)

// New returns a Controller.
func New(cfg Config, statuses *Statuses) *Controller {
	return &Controller{Config: cfg, statuses: statuses}
}

// Result is the result of a reconciliation.
type Result struct {
	// After is the requeue delay; 0 means only after a change.
	After time.Duration
}

// Reconcile reconciles a BackendPool by name. It returns ErrDeleted if it was deleted during the call.
func (c *Controller) Reconcile(ctx context.Context, namespace, name string, now time.Time) (Result, error) {
	p := c.Cluster.Pool(namespace, name)
	uid := ""
	if p != nil {
		uid = string(p.UID)
	}
	for _, e := range c.statuses.dropOthers(namespace, name, uid) {
		c.forgetUnreferenced(e)
		c.Retention.Forget(e.ref)
	}
	if p == nil {
		return Result{}, nil
	}
	e, err := c.statuses.LoadEntry(ctx, p, now)
	if err != nil {
		return Result{}, err
	}
	e.clearExpiredRetryAfter(p.Generation, now)
	if err := c.statuses.flushStatus(ctx, e, now); err != nil {
		return Result{}, err
	}
	binding, old := c.ResolveBinding(p, now), isPaused(e)
	c.recordOwner(p, e, binding.Pool, now)
	err = c.applyBinding(ctx, p, e, binding, now)
	if kind, text := PauseEvent(p, old, isPaused(e)); kind != "" {
		c.Events.OnPool(p, Event{Normal, kind, text})
	}
	return Result{RequeueAfter(e.timeToNextCheck(now), p, now)}, err
}

func (c *Controller) applyBinding(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, now time.Time) error {
	switch {
	case binding.Deleting:
		if needsServiceCheck(e) {
			c.Owner.HandleDeletion(p)
		}
		return c.releasePool(ctx, p, e, binding, now)
	case binding.State == Active:
		return c.ensureMembers(ctx, p, e, binding, now)
	case binding.State == ServiceMissing && e.IsReleased(): // the pool was deleted with its Service: not an error
		e.setIdleInput(operationInput{})
		return nil
	case binding.State == ServiceMissing:
		return c.removeMembers(ctx, p, e, binding, now)
	}
	return c.suspendPool(ctx, p, e, binding, now)
}

// recordOwner records the target and the owner of a BackendPool that Weir created. The next status write
// persists it.
func (c *Controller) recordOwner(p *v1alpha1.BackendPool, e *Entry, pool lb.PoolID, now time.Time) {
	owner := c.statuses.ManagedFor(p)
	if owner == "" {
		owner = c.Owner.ManagedFor(p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pool = pool
	e.changeStatusLater(now, func(s *v1alpha1.BackendPoolStatus) { s.MadeFor = owner })
}

func (c *Controller) ensureMembers(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, now time.Time) error {
	if !hasFinalizer(p) {
		e.setIdleInput(operationInput{})                // operations without the finalizer were dropped
		return c.statuses.setFinalizer(ctx, e, p, true) // its watch event triggers the next reconciliation
	}
	set, err := membersOf(c, p, e)
	if err != nil {
		return err
	}
	input := newOperationInput(p, binding, set)
	retryRequested := isRetryRequested(e, input)
	changeLater(e, now, func(s *v1alpha1.BackendPoolStatus) {
		setSpecConditions(s, p, now)
		clearPlanned(s)
		reason := syncedReason(s.Conditions)
		// A retry request for a pool that is in sync reads it again although nothing changed.
		if !slices.Contains(attemptReasons, reason) || retryRequested && reason == v1alpha1.ReasonInSync {
			setPending(s, p.Generation)
		}
	})
	changed := e.hasChanged(input)
	if retryRequested {
		c.Workers.Retry(e.ref)
	}
	if e.needsOperation(input, now) {
		return c.queueIfNeeded(ctx, p, e, binding, changed, now)
	}
	return c.refreshIfInSync(ctx, p, e, binding, set)
}

// setPending sets Synced to Unknown before a pool is read.
func setPending(s *v1alpha1.BackendPoolStatus, generation int64) {
	reason, message := v1alpha1.ReasonUpdating, "the pool is read again, and written where it has to be"
	if s.LastOutcome == nil {
		reason, message = v1alpha1.ReasonPending, "nothing has been read from Azure yet"
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, metav1.ConditionUnknown, reason, message)
}

// refreshIfInSync refreshes the status of a pool of nodes; the Service reconciler handles the others.
func (c *Controller) refreshIfInSync(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, set membership.Set) error {
	if p.Spec.Nodes != nil {
		c.notifyRetainedMembers(p, e, binding, set)
	}
	if p.Spec.Nodes == nil || !c.Workers.IsInSync(binding.Pool, set.Fingerprint()) {
		return nil
	}
	return c.refreshSyncedStatus(ctx, p, e, set)
}

// notifyRetainedMembers records an event when members begin to be retained.
func (c *Controller) notifyRetainedMembers(p *v1alpha1.BackendPool, e *Entry, binding Binding, set membership.Set) {
	if e.setRetainsEvicted(len(set.KeptUp) > 0) {
		c.Events.RecordRetained(p, binding, set)
	}
}

func (c *Controller) removeMembers(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, now time.Time) error {
	hasMembers := binding.HasRecord && e.hasMembers()
	if hasMembers && !hasFinalizer(p) {
		e.setIdleInput(operationInput{})
		return c.statuses.setFinalizer(ctx, e, p, true)
	}
	input := newOperationInput(p, binding, membership.Set{})
	if hasMembers && !e.needsOperation(input, now) {
		return nil
	}
	err := c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		setSpecConditions(s, p, now)
		clearPlanned(s)
		if hasMembers && slices.Contains(failureReasons, syncedReason(s.Conditions)) {
			return // keep the result of the last attempt until the next
		}
		if !hasMembers {
			setIdle(s, p.Generation, now)
		}
		reason, message := removalMessage(binding, hasMembers)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, message)
	})
	if hasMembers {
		c.queueRemoval(e, binding, now)
	} else {
		e.setIdleInput(input)
	}
	return err
}

// queueRemoval queues an operation that removes Weir's addresses, without events.
func (c *Controller) queueRemoval(e *Entry, binding Binding, now time.Time) {
	e.scheduleCheck(now.Add(c.ReleaseRetryInterval))
	c.Workers.Add(schedule.Operation{Ref: e.ref, Pool: binding.Pool, ChangedAt: now, NotBefore: e.notBefore, Exempt: true})
}

// suspendPool keeps the pool unchanged and sets the reason.
func (c *Controller) suspendPool(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, now time.Time) error {
	e.setIdleInput(operationInput{state: binding.State, generation: p.Generation})
	c.Workers.Drop(e.ref)
	status := metav1.ConditionFalse
	if binding.State == Paused || binding.State == DryRun || binding.Reason == v1alpha1.ReasonPending {
		status = metav1.ConditionUnknown
	}
	return c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		setSpecConditions(s, p, now)
		setIdle(s, p.Generation, now)
		if binding.State != DryRun {
			clearPlanned(s)
		}
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, status, binding.Reason, binding.Message)
	})
}

// RecheckAt rechecks pools without a change.
func RecheckAt(c *Controller, refs []schedule.Ref, now time.Time) {
	for _, ref := range refs {
		if e := c.statuses.GetEntry(ref); e != nil {
			e.mu.Lock()
			e.requestCheck(now)
			e.mu.Unlock()
			c.Queue(ref)
		}
	}
}

// RecheckMissing rechecks a pool that was missing: its load balancer now exists.
func (c *Controller) RecheckMissing(p *v1alpha1.BackendPool, now time.Time) {
	if e := c.statuses.GetEntry(RefOf(p)); e != nil && e.IsPoolMissing() {
		e.mu.Lock()
		e.requestCheck(now)
		e.mu.Unlock()
		c.Queue(e.ref)
	}
}

// forgetUnreferenced drops the updater's state of a pool that no BackendPool references.
func (c *Controller) forgetUnreferenced(e *Entry) {
	e.mu.Lock()
	pool := e.pool
	e.mu.Unlock()
	if pool != (lb.PoolID{}) && len(c.Cluster.PoolsAt(pool.Key())) == 0 {
		c.Workers.Forget(pool)
	}
}

// lookupEntry returns the entry of an existing BackendPool; nil for both if it does not exist.
func (c *Controller) lookupEntry(ref schedule.Ref) (*Entry, *v1alpha1.BackendPool) {
	e, p := c.statuses.GetEntry(ref), c.Cluster.Pool(ref.Namespace, ref.Name)
	if e == nil || p == nil || string(p.UID) != ref.UID {
		return nil, nil
	}
	return e, p
}

func hasFinalizer(p *v1alpha1.BackendPool) bool {
	return slices.Contains(p.Finalizers, v1alpha1.Finalizer)
}
