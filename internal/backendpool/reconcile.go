// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/keeping"
	"weir.dev/weir/internal/backendpool/pausing"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
)

// Config configures a Controller.
type Config struct {
	Cluster Cluster
	Owner   Owner
	// Lanes must be set before the first Reconcile.
	Lanes  Lanes
	Events Events
	// Queue requests a reconciliation of a BackendPool. It does not block.
	Queue func(ref poolschedule.Ref)
	Log   *slog.Logger
	// RecheckAfter is the delay before a pool is read again that did not exist or contained network
	// interfaces.
	RecheckAfter time.Duration
	// ReleaseAgainAfter is the delay before a failed removal of addresses is retried.
	ReleaseAgainAfter time.Duration
	// Keeper decides which members are retained.
	Keeper *keeping.Keeper
}

// Controller reconciles BackendPools. It implements poolupdate's Cluster and Reporter, and poolattempt's
// Ledger; those methods are safe for concurrent use.
type Controller struct {
	Config
	statuses   *Statuses
	unrecorded unrecorded
}

var (
	_ poolupdate.Cluster  = (*Controller)(nil)
	_ poolattempt.Ledger  = (*Controller)(nil)
	_ poolupdate.Reporter = (*Controller)(nil)
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

// Reconcile reconciles a BackendPool by name. It returns ErrGone if it was deleted during the call.
func (c *Controller) Reconcile(ctx context.Context, namespace, name string, now time.Time) (Result, error) {
	p := c.Cluster.Pool(namespace, name)
	uid := ""
	if p != nil {
		uid = string(p.UID)
	}
	for _, e := range c.statuses.drop(namespace, name, uid) {
		c.forgetUnnamed(e)
	}
	if p == nil {
		return Result{}, nil
	}
	e, err := c.statuses.Load(ctx, p, now)
	if err != nil {
		return Result{}, err
	}
	e.endsRest(p.Generation, now)
	if err := c.statuses.flush(ctx, e, now); err != nil {
		return Result{}, err
	}
	is, was := c.Entitlement(p, now), isPaused(e)
	c.recordMade(p, e, is.Pool, now)
	err = c.bring(ctx, p, e, is, now)
	if kind, text := pausing.Told(p, was, isPaused(e)); kind != "" {
		c.Events.OnPool(p, Event{Normal, kind, text})
	}
	return Result{pausing.Sooner(e.wait(now), p, now)}, err
}

func (c *Controller) bring(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	switch {
	case is.Deleting:
		if unseen(e) {
			c.Owner.Goes(p)
		}
		return c.release(ctx, p, e, is, now)
	case is.State == Active:
		return c.fill(ctx, p, e, is, now)
	case is.State == ServiceGone && e.Released(): // the pool was deleted with its Service: not an error
		return nil
	case is.State == ServiceGone:
		return c.drain(ctx, p, e, is, now)
	}
	return c.hold(ctx, p, e, is, now)
}

// recordMade records the target and the owner of a BackendPool that Weir created. The next status write
// persists it.
func (c *Controller) recordMade(p *v1alpha1.BackendPool, e *Entry, pool lb.PoolID, now time.Time) {
	owner := c.statuses.MadeFor(p)
	if owner == "" {
		owner = c.Owner.MadeFor(p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pool = pool
	e.amendSoon(now, func(s *v1alpha1.BackendPoolStatus) { s.MadeFor = owner })
}

func (c *Controller) fill(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	if !hasFinalizer(p) {
		e.idle(situation{})                             // operations without the finalizer were dropped
		return c.statuses.setFinalizer(ctx, e, p, true) // its watch event triggers the next reconciliation
	}
	set, err := membersOf(c, p, e)
	if err != nil {
		return err
	}
	here := situationOf(p, is, set)
	asked := retried(e, here)
	soon(e, now, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p, now)
		settleRehearsed(s)
		reason := syncedReason(s.Conditions)
		// A retry request for a pool that is in sync reads it again although nothing changed.
		if !slices.Contains(attempted, reason) || asked && reason == v1alpha1.ReasonLevel {
			pending(s, p.Generation)
		}
		notesProblem(s)
	})
	changed := e.changed(here)
	if asked {
		c.Lanes.Retry(e.ref)
	}
	if e.due(here, now) {
		return c.bringLevel(ctx, p, e, is, changed, now)
	}
	return c.relevelIf(ctx, p, e, is, set)
}

// pending sets Synced to Unknown before a pool is read.
func pending(s *v1alpha1.BackendPoolStatus, generation int64) {
	reason, why := v1alpha1.ReasonUpdating, "the pool is read again, and written where it has to be"
	if s.LastOutcome == nil {
		reason, why = v1alpha1.ReasonPending, "nothing has been read from Azure yet"
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, metav1.ConditionUnknown, reason, why)
}

// relevelIf refreshes the status of a pool of nodes; the Service reconciler handles the others.
func (c *Controller) relevelIf(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, set membership.Set) error {
	if p.Spec.Nodes != nil {
		c.tellSpared(p, e, is, set)
	}
	if p.Spec.Nodes == nil || !c.Lanes.LevelAs(is.Pool, set.Fingerprint()) {
		return nil
	}
	return c.relevel(ctx, p, e, set)
}

// tellSpared records an event when members begin to be spared.
func (c *Controller) tellSpared(p *v1alpha1.BackendPool, e *Entry, is Entitlement, set membership.Set) {
	if e.beginsToSpare(len(set.Spared) > 0) {
		c.Events.Spares(p, is, set)
	}
}

func (c *Controller) drain(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	left := is.Taken && e.holds()
	if left && !hasFinalizer(p) {
		e.idle(situation{})
		return c.statuses.setFinalizer(ctx, e, p, true)
	}
	here := situationOf(p, is, membership.Set{})
	if left && !e.due(here, now) {
		return nil
	}
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p, now)
		settleRehearsed(s)
		if left && slices.Contains(unlevel, syncedReason(s.Conditions)) {
			return // keep the result of the last attempt until the next
		}
		if !left {
			rests(s, p.Generation, now)
		}
		reason, why := removed(is, left)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, why)
	})
	if left {
		c.remove(e, is, now)
	} else {
		e.idle(here)
	}
	return err
}

// remove queues an operation that removes Weir's addresses, without events.
func (c *Controller) remove(e *Entry, is Entitlement, now time.Time) {
	e.again(now.Add(c.ReleaseAgainAfter))
	c.Lanes.Add(poolschedule.Operation{Ref: e.ref, Pool: is.Pool, ChangedAt: now, NotBefore: e.notBefore, Exempt: true})
}

// hold keeps the pool unchanged and sets the reason.
func (c *Controller) hold(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	e.idle(situation{state: is.State, generation: p.Generation})
	c.Lanes.Drop(e.ref)
	status := metav1.ConditionFalse
	if is.State == Paused || is.State == DryRun || is.Reason == v1alpha1.ReasonPending {
		status = metav1.ConditionUnknown
	}
	return c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		settleConditions(s, p, now)
		rests(s, p.Generation, now)
		if is.State != DryRun {
			settleRehearsed(s)
		}
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, status, is.Reason, is.Why)
	})
}

// LookAgainAt rechecks pools without a change.
func LookAgainAt(c *Controller, refs []poolschedule.Ref, now time.Time) {
	for _, ref := range refs {
		if e := c.statuses.Known(ref); e != nil {
			e.again(now)
			c.Queue(ref)
		}
	}
}

// LookAgain rechecks a pool that was missing: its load balancer now exists.
func (c *Controller) LookAgain(p *v1alpha1.BackendPool, now time.Time) {
	if e := c.statuses.Known(RefOf(p)); e != nil && e.LacksPool() {
		e.again(now)
		c.Queue(e.ref)
	}
}

// forgetUnnamed drops the updater's state of a pool that no BackendPool references.
func (c *Controller) forgetUnnamed(e *Entry) {
	e.mu.Lock()
	pool := e.pool
	e.mu.Unlock()
	if pool != (lb.PoolID{}) && len(c.Cluster.PoolsAt(pool.Key())) == 0 {
		c.Lanes.Forget(pool)
	}
}

// known returns the entry of an existing BackendPool; nil for both if it does not exist.
func (c *Controller) known(ref poolschedule.Ref) (*Entry, *v1alpha1.BackendPool) {
	e, p := c.statuses.Known(ref), c.Cluster.Pool(ref.Namespace, ref.Name)
	if e == nil || p == nil || string(p.UID) != ref.UID {
		return nil, nil
	}
	return e, p
}

func hasFinalizer(p *v1alpha1.BackendPool) bool {
	return slices.Contains(p.Finalizers, v1alpha1.Finalizer)
}
