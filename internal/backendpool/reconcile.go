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

// Config is what a Controller works with.
type Config struct {
	Cluster Cluster
	Owner   Owner
	// Lanes are set before the first call of Reconcile: they are made with the Controller.
	Lanes  Lanes
	Events Events
	// Queue has a BackendPool reconciled soon. It waits for nobody.
	Queue func(ref poolschedule.Ref)
	Log   *slog.Logger
	// RecheckAfter is when a pool is read again that did not exist, or held network
	// interfaces.
	RecheckAfter time.Duration
	// ReleaseAgainAfter is when our addresses are taken out again if that failed.
	ReleaseAgainAfter time.Duration
	// Keeper says which members stay for a while.
	Keeper *keeping.Keeper
}

// Controller keeps BackendPools in the state that they are entitled to. It implements
// poolupdate's Cluster and Reporter, and poolattempt's Ledger; these may be called from any goroutine.
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

// New returns a Controller of these statuses.
func New(cfg Config, statuses *Statuses) *Controller {
	return &Controller{Config: cfg, statuses: statuses}
}

// Result is what follows a reconciliation.
type Result struct {
	// After is when to look again; 0 for only when something changes.
	After time.Duration
}

// Reconcile brings the BackendPool of a name into the state that it is entitled to. It returns
// ErrGone for one that has gone meanwhile.
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

// bring has a BackendPool do what it is entitled to.
func (c *Controller) bring(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	switch {
	case is.Deleting:
		if unseen(e) {
			c.Owner.Goes(p)
		}
		return c.release(ctx, p, e, is, now)
	case is.State == Active:
		return c.fill(ctx, p, e, is, now)
	case is.State == ServiceGone && e.Released(): // it goes with its pool, which is gone: no complaint
		return nil
	case is.State == ServiceGone:
		return c.drain(ctx, p, e, is, now)
	}
	return c.hold(ctx, p, e, is, now)
}

// recordMade notes for whom Weir made a BackendPool. The next write of the status writes it:
// what rests on it comes after that. It remembers where the BackendPool points, too.
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

// fill has the pool hold its members.
func (c *Controller) fill(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	if !hasFinalizer(p) {
		e.idle(situation{})                             // without it operations were dropped
		return c.statuses.setFinalizer(ctx, e, p, true) // its event comes back here
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
		// Whoever asks about a level pool doubts that: it is read, though nothing is known to have changed.
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

// pending says that a pool is about to be read.
func pending(s *v1alpha1.BackendPoolStatus, generation int64) {
	reason, why := v1alpha1.ReasonUpdating, "the pool is read again, and written where it has to be"
	if s.LastOutcome == nil {
		reason, why = v1alpha1.ReasonPending, "nothing has been read from Azure yet"
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, metav1.ConditionUnknown, reason, why)
}

// relevelIf is relevel for a pool of nodes: those of a Service are relevelled when it is
// reconciled.
func (c *Controller) relevelIf(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, set membership.Set) error {
	if p.Spec.Nodes != nil {
		c.tellSpared(p, e, is, set)
	}
	if p.Spec.Nodes == nil || !c.Lanes.LevelAs(is.Pool, set.Fingerprint()) {
		return nil
	}
	return c.relevel(ctx, p, e, set)
}

// tellSpared tells where members begin to stay up; the status follows each of them.
func (c *Controller) tellSpared(p *v1alpha1.BackendPool, e *Entry, is Entitlement, set membership.Set) {
	if e.beginsToSpare(len(set.Spared) > 0) {
		c.Events.Spares(p, is, set)
	}
}

// drain takes our addresses out of a pool whose Service is gone.
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
			return // what the last attempt met stays in sight until the next
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

// remove queues the operation that takes our addresses out; nobody is told of it.
func (c *Controller) remove(e *Entry, is Entitlement, now time.Time) {
	e.again(now.Add(c.ReleaseAgainAfter))
	c.Lanes.Add(poolschedule.Operation{Ref: e.ref, Pool: is.Pool, ChangedAt: now, NotBefore: e.notBefore, Exempt: true})
}

// hold leaves the pool as it is and says why.
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

// LookAgainAt has pools looked at again though nothing of them has changed.
func LookAgainAt(c *Controller, refs []poolschedule.Ref, now time.Time) {
	for _, ref := range refs {
		if e := c.statuses.Known(ref); e != nil {
			e.again(now)
			c.Queue(ref)
		}
	}
}

// LookAgain has a pool looked at again that was missing when it was seen last: its load balancer
// is known to be there now.
func (c *Controller) LookAgain(p *v1alpha1.BackendPool, now time.Time) {
	if e := c.statuses.Known(RefOf(p)); e != nil && e.LacksPool() {
		e.again(now)
		c.Queue(e.ref)
	}
}

// forgetUnnamed drops what the lanes remember of a pool that nobody names any more.
func (c *Controller) forgetUnnamed(e *Entry) {
	e.mu.Lock()
	pool := e.pool
	e.mu.Unlock()
	if pool != (lb.PoolID{}) && len(c.Cluster.PoolsAt(pool.Key())) == 0 {
		c.Lanes.Forget(pool)
	}
}

// known returns the entry of a BackendPool that is still there; nil for both if it is not.
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
