// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
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
		lossErr, _ := asRemovalError(res.Err)
		st.Sync.markStale() // after a move by labels the spec is unchanged
		r.recordBlocked(s, st, res.Desired, lossErr.Addresses, now)
	case StepFail, StepRetry:
		st.Sync.markStale() // it may be partly applied
		if step == StepFail {
			r.events.warnFailure(s, &st.Events, conditionOf(res.Err), failedTo(res), res.Err)
		}
		failed = &retryError{error: res.Err, log: "load balancer out of sync"}
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
			failed = r.linkError(s, st, res.Link.Err)
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

// persistResult persists the result of a request, in an order that depends on the step.
func (r *Reconciler) persistResult(ctx context.Context, s Service, e *entry, step Step, res loadbalancer.Result, now time.Time) error {
	switch step {
	case StepFill:
		return r.persistFill(ctx, s, e, res, now)
	case StepMove:
		return r.persistMove(ctx, s, e, res, now)
	case StepDrain:
		return r.persistDrain(ctx, s, e, res, now)
	case StepRelease:
		return r.persistRelease(ctx, s, &e.State, res)
	}
	return r.persistFinish(ctx, s, e, res, now)
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
			reason.log = "no load balancer for the Service"
		}
		delay := st.Waiting.recordFailure(err, r.cfg.Backoff, now)
		if reason.log != "" {
			r.events.logWarning(ctx, &st.Events, reason.log, s.Name, reason.error, now.Add(delay))
		}
		return delay, nil
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

// retryError ends a reconcile that must be repeated. notSent is set if no load balancer could be chosen or public IPs could
// not be read. log is what the log reports, with the time of the next attempt; empty for nothing.
type retryError struct {
	error
	notSent bool
	log     string
}

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.error }
