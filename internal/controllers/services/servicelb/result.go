// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/service"
)

// processResult processes the result of a request. A *retryError means the request must be repeated. After any other
// error, the result is kept and persisted again.
func (r *Reconciler) processResult(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	if err := r.dropNodePools(ctx, res); err != nil {
		return err
	}
	if err := r.reportLink(ctx, s, e, res); err != nil {
		return err
	}
	st := &e.State
	if res.CloseOnly {
		r.resolveClosing(ctx, s, st, res, now)
		return nil
	}
	step := ResolveStep(res, s.IsManaged(r.cfg.Settings.Class), st.Sync.isResync(st.Pending, res.Request))
	if step != StepBlock {
		r.events.reportRetained(s, &st.Events, res.Retained)
	}
	var failed error
	switch step {
	case StepBlock:
		held, _ := asRemovalError(res.Err)
		st.Sync.markStale() // after a move by labels the spec is unchanged
		r.recordBlocked(s, st, res.Desired, held.Addresses, now)
	case StepFail, StepRetry:
		st.Sync.markStale() // it may be partly applied
		if step == StepFail {
			r.events.warnFailure(s, &st.Events, conditionOf(res.Err), failedTo(res), res.Err)
		}
		r.events.logWarning(ctx, &st.Events, "load balancer not as the Service wants it", res.Service, res.Err)
		failed = &retryError{error: res.Err}
	case StepDefer:
		r.events.reportDeferred(s, &st.Events, res.Err)
		failed = &retryError{error: res.Err}
	case StepSkip:
		failed = &retryError{error: res.Err}
	case StepDrop:
		st.Sync.markStale() // Azure has changed
	case StepFill, StepMove, StepDrain, StepRelease, StepFinish:
		st.Events.hadLoadBalancer = st.Events.hadLoadBalancer || (step == StepDrain || step == StepRelease) && res.Changed
		if err := r.persistResult(ctx, s, e, step, res, now); err != nil {
			r.warnPersistError(s, st, err)
			return err
		}
		if step == StepFinish && res.Link.Err != nil {
			failed = r.linkError(ctx, s, st, res.Link.Err)
		}
	}
	if st.Pending.clearResult(); failed == nil {
		st.Waiting.resetFailures()
	}
	return failed
}

func failedTo(res loadbalancer.Result) string {
	if res.Desired == nil {
		return "failed to delete load balancer: "
	}
	return "failed to ensure load balancer: "
}

// warnPersistError warns once about an error that will not resolve by itself.
func (r *Reconciler) warnPersistError(s Service, st *State, err error) {
	if errors.Is(err, ErrNameTaken) || !r.cfg.Store.IsTransient(err) && !errors.Is(err, ErrServiceGone) && !errors.Is(err, ErrPoolDeleting) {
		r.events.warnOnce(s, &st.Events, ConditionFailed, "", err)
	}
}

// persistResult persists the result of a request: BackendPools, then the status, then the record.
func (r *Reconciler) persistResult(ctx context.Context, s Service, e *entry, step Step, res loadbalancer.Result, now time.Time) error {
	if err := r.writePools(ctx, s, e, step, res, now); err != nil {
		return err
	}
	observed, publishes := e.Sync.addresses, true
	switch step {
	case StepFinish:
		publishes = false
		if err := r.publishInSync(ctx, s, &e.State, res, now); err != nil {
			return err
		}
	case StepFill: // a moving Service keeps its address until it can leave
		publishes = len(res.RemoveFrom) == 0
	case StepMove:
		publishes = e.Move.publishes()
	case StepDrain, StepRelease: // it keeps the retained address
		observed, publishes = nil, !s.Deleting && !res.NeedsDrain
	}
	if publishes {
		if err := r.cfg.Store.PublishAddresses(ctx, s, observed); err != nil {
			return err
		}
	}
	return r.completeResult(ctx, s, &e.State, step, res, now)
}

func (r *Reconciler) writePools(ctx context.Context, s Service, e *entry, step Step, res loadbalancer.Result, now time.Time) error {
	st := &e.State
	switch step {
	case StepDrain:
		return r.drainPools(ctx, s, e, res, now)
	case StepRelease: // Azure has no parts of it left
		if err := r.cfg.Store.DropInterimPools(ctx, res.MissingPools); err != nil {
			return err
		}
		return r.cfg.Store.DropPools(ctx, s, nil, res.MissingPools)
	case StepFill:
		// Fill the new pools before flows move. Until then, the present rules, BackendPools and addresses
		// remain.
		st.Sync.markStale()
		st.PoolWait.startWait(waitFill, res, now)
		r.States.publishPoolWait(e) // publish first: the pool may be filled at once
		r.events.reportFilling(s, &st.Events, res.FillingPools)
		if _, err := r.createPools(ctx, s, res.On, res.Pools); err != nil {
			return err
		}
	case StepMove:
		st.Sync.markStale()
		st.PoolWait.startMoveWait(res, st.Move.advance(res.Request, st.Placement.LoadBalancers, now))
		if _, err := r.createPools(ctx, s, res.On, res.Pools); err != nil {
			return err
		}
	default:
		if err := r.MakePools(ctx, s, res); err != nil {
			// Nodes are usually placed by the next try.
			if reason, ok := errors.AsType[NotPlacedError](err); ok && reason.Reason != "" {
				r.events.warnOnce(s, &st.Events, ConditionFailed, err.Error(), nil)
			}
			return err
		}
		if err := r.drainPools(ctx, s, e, res, now); err != nil {
			return err
		}
		has := Record{LoadBalancers: mergeNames([]string{res.On.Name}, e.PoolWait.drainingLoadBalancers()), Groups: r.cfg.Settings.groupsOf(res.Desired), LinkGroups: r.cfg.Settings.linkGroups(res.Desired), Properties: res.Desired.RequestedProperties}
		if len(res.DrainingPools) > 0 { // a public IP remains with the load balancer
			has.Groups = mergeNames(has.Groups, res.Groups)
		}
		if res.Link.Err != nil || res.Link.IsIncomplete { // unwanted parts may still exist
			has.LinkGroups = res.LinkGroups
		}
		if err := r.persistRecord(ctx, s, st, has); err != nil {
			return err
		}
	}
	st.Sync.setStatusAddresses(res.Addresses)
	return nil
}

func (r *Reconciler) completeResult(ctx context.Context, s Service, st *State, step Step, res loadbalancer.Result, now time.Time) error {
	switch step {
	case StepFinish:
		if err := r.reportConflicts(ctx, s, st, res.Conflicts); err != nil {
			return err
		}
		r.events.reportUnusedIPs(s, &st.Events, res.Unused)
		if res.Link.Err == nil || st.Events.isAnnounced {
			r.events.reportReady(s, &st.Events, res) // before Removal is cleared
		}
		r.clearBlocked(s, st)
		st.Sync.recordInSync(res, st.Pending, now, r.cfg.Settings.ResyncPeriod)
		st.Closing.setRestriction(res.Desired.Restriction())
	case StepDrain:
		r.States.SetObserved(s, nil)
		st.Sync.markStale()
		if !res.NeedsDrain {
			st.Sync.setStatusAddresses(nil)
		}
	case StepRelease:
		if !s.Deleting {
			if err := r.reportConflicts(ctx, s, st, nil); err != nil {
				return err
			}
			if err := r.writeConditions(ctx, s, st, StatusUpdate{Conditions: clearedConditions()}); err != nil {
				return err
			}
		}
		r.States.SetObserved(s, nil)
		if err := r.persistRecord(ctx, s, st, Record{}); err != nil {
			return err
		}
		r.events.reportDeleted(s, &st.Events)
		r.clearBlocked(s, st)
		st.Sync.markStale()
		st.Sync.setStatusAddresses(nil)
		st.Placement.free = true
		st.Closing = AccessClosing{}
	}
	return nil
}

func (r *Reconciler) dropNodePools(ctx context.Context, res loadbalancer.Result) error {
	for _, id := range res.DeletedLoadBalancers {
		if err := r.cfg.Store.DropNodePools(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// MakePools creates the BackendPools of a Service, now that Azure has its pools, and deletes former ones.
func (r *Reconciler) MakePools(ctx context.Context, s Service, res loadbalancer.Result) error {
	names, err := r.createPools(ctx, s, res.On, res.Pools)
	if err != nil {
		return err
	}
	if err := r.cfg.Store.DropInterimPools(ctx, res.MissingPools); err != nil {
		return err
	}
	return r.cfg.Store.DropPools(ctx, s, names, res.MissingPools)
}

func (r *Reconciler) createPools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	if r.States.SetObserved(s, &ObservedPools{on, pools}) { // existing BackendPools wait for this
		r.cfg.Store.RequeuePools(s)
	}
	return r.cfg.Store.MakePools(ctx, s, on, pools)
}

func (r *Reconciler) reportConflicts(ctx context.Context, s Service, st *State, contests []conflict.Conflict) error {
	if st.Placement.isGone {
		return nil
	}
	is := StatusCondition{Type: typeConflicts}
	if len(contests) > 0 {
		is.Text = fmt.Sprint(contests)
	}
	if err := r.cfg.Store.UpdateConflicts(ctx, s, contests, st.Events.recordCondition(is)); err != nil {
		return err
	}
	st.Events.lastConditions[typeConflicts] = is
	for _, c := range contests {
		reported := slices.ContainsFunc(st.Sync.conflicts, func(o conflict.Conflict) bool { return o.Resource == c.Resource && o.Until.Equal(c.Until) })
		if !reported && !c.Until.IsZero() {
			r.cfg.Events.RecordEvent(s, Event{Reason: ReasonConflict, Warning: true, Conflict: &c, Of: len(contests)})
		}
	}
	st.Sync.conflicts = contests
	return nil
}

// retryDelay returns when to reconcile a Service again. The work queue retries Kubernetes errors. If no load
// balancer can be chosen, the deletion of other Services may help.
func (r *Reconciler) retryDelay(ctx context.Context, s Service, st *State, err error, now time.Time) (time.Duration, error) {
	if f, ok := errors.AsType[*armerror.Fault](err); ok && f.IsDeferred() {
		return max(f.RetryAt.Sub(now), time.Millisecond), nil
	}
	if reason, ok := errors.AsType[*retryError](err); ok {
		if reason.notSent && !isDryRunDeferred(err) && ctx.Err() == nil { // a shutdown is not an error of the Service
			st.Sync.markStale() // if it is reverted, the error must be cleared
			r.events.warnFailure(s, &st.Events, conditionOf(err), "nothing is written yet: ", reason.error)
			r.events.logWarning(ctx, &st.Events, "no load balancer for the Service", s.Name, reason.error)
		}
		return st.Waiting.recordFailure(err, r.cfg.Backoff, now), nil
	}
	if err != nil {
		return 0, err
	}
	if wait := st.Waiting.retryAfter(now); wait > 0 {
		return wait, nil
	}
	class := r.cfg.Settings.Class
	if st.Placement.free && (st.Placement.isGone || !s.IsManaged(class) && !s.MayHaveResources(class)) {
		r.forgetService(s.Name)
	}
	return st.nextDelay(now), nil
}

func isDryRunDeferred(err error) bool {
	f, ok := errors.AsType[*armerror.Fault](err)
	return ok && f.Code == dryrun.CodeReadLimit
}

// retryError ends a reconcile that must be repeated. The flag is set if no load balancer could be chosen or
// public IPs could not be read.
type retryError struct {
	error
	notSent bool
}

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.error }
