// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
)

// reconcile decides from the cached Provision, which costs no request, and again from the live one
// before it acts.
func (r *Reconciler) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.Provision
	if err := r.Cached.Get(ctx, req.NamespacedName, &p); err != nil {
		if apierrors.IsNotFound(err) {
			r.forgetProvision(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	r.attempts.cancelStale(req.NamespacedName, p.UID)
	if p.DeletionTimestamp != nil {
		r.forgetProvision(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	at, wanted := r.localState(&p), objects.CachedWanted(&p)
	at.desired = &wanted
	seen, err := r.nextDecision(ctx, &p, at, time.Now())
	if err == nil && seen.needsAction() {
		seen, err = r.applyDecision(ctx, req)
	}
	if err == nil && seen.p != nil {
		seen.after = r.probeTarget(seen.p, seen.job, seen.policy, seen.after)
	}
	return k8s.ReconcileResult(ctx, err, seen.after)
}

func (r *Reconciler) forgetProvision(key types.NamespacedName) {
	r.attempts.cancelStale(key, "")
	r.probes.deleteState(key)
}

func (r *Reconciler) localState(p *v1alpha1.Provision) attemptState {
	at := r.attempts.stateFor(p)
	at.probes = r.probes.stateFor(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	return at
}

type reconcilePlan struct {
	p        *v1alpha1.Provision // with the status to record
	writes   bool
	decision policy.Decision
	policy   policy.Policy
	job      string
	result   *attemptResult
	after    time.Duration // requeue delay; 0 waits for a change
}

func (r reconcilePlan) needsAction() bool { return r.writes || r.startsAttempt() || r.result != nil }

func (r reconcilePlan) startsAttempt() bool {
	return r.decision.Action == policy.StartAttempt || r.decision.Action == policy.ResumeAttempt
}

func (r *Reconciler) applyDecision(ctx context.Context, req reconcile.Request) (reconcilePlan, error) {
	p := &v1alpha1.Provision{}
	if err := r.Live.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcilePlan{}, nil
		}
		return reconcilePlan{}, err
	}
	if p.DeletionTimestamp != nil {
		return reconcilePlan{}, nil
	}
	key := req.NamespacedName
	reserved := r.attempts.reserveSlot(key, p.UID)
	at := r.localState(p)
	at.busy = at.busy || !reserved
	d, err := r.nextDecision(ctx, p, at, time.Now())
	if err == nil && d.writes {
		err = r.applyStatus(ctx, d.p)
	}
	if err != nil || !d.startsAttempt() {
		if reserved {
			r.attempts.releaseSlot(key)
		}
		if err != nil {
			return reconcilePlan{}, err
		}
	}
	if d.result != nil {
		r.attempts.completeAttempt(key, d.result)
	}
	if d.decision.TimeoutReason != "" {
		r.attempts.countResult(policy.ResultFailed)
	}
	for _, w := range d.decision.Events {
		kind := corev1.EventTypeNormal
		if w.Warning {
			kind = corev1.EventTypeWarning
		}
		_ = r.writes.Wait(ctx, p.Namespace) // best effort: emit the event even during shutdown
		r.Events.Add(d.p, kind, w.Reason, humanize.FormatMessage(w.Message, humanize.MaxMessage))
	}
	if d.startsAttempt() {
		own := d
		own.p = &v1alpha1.Provision{ObjectMeta: metadata.Identity(d.p.ObjectMeta, nil), Spec: d.p.Spec, Status: *d.p.Status.DeepCopy()}
		r.attempts.startAttempt(key, func(ctx context.Context) *attemptResult { return r.runAttempt(ctx, own) })
	}
	if d.result != nil && d.after == 0 && !d.startsAttempt() {
		d.after = time.Millisecond // requeue now: a slot has become free
	}
	return d, nil
}

func (r *Reconciler) nextDecision(ctx context.Context, p *v1alpha1.Provision, at attemptState, now time.Time) (reconcilePlan, error) {
	retryPolicy, values, policyErr, err := r.resolvePolicy(ctx, p)
	if err != nil {
		return reconcilePlan{}, err
	}
	if at.desired == nil {
		wanted := objects.ParseWanted(p)
		at.desired = &wanted
	}
	policyErr = errors.Join(policyErr, at.desired.Rejection)
	before := p.Status.DeepCopy()
	state, d := stateFromStatus(&p.Status), reconcilePlan{p: p, policy: retryPolicy, job: at.desired.Job}
	in := policy.Input{SpecDigest: at.desired.Job, Policy: retryPolicy, Requests: userRequests(p), AtWork: at.running, Busy: at.busy, Probes: at.probes}
	if at.result != nil {
		if policyErr != nil {
			in.Policy = at.result.policy
		}
		d.result, in.AtWork = at.result, false
		if state.Phase == policy.Running && state.Number == at.result.Number {
			var events []policy.Event
			state, events = state.FinishAttempt(at.result.outcome, in, at.result.failureMessage(), now)
			d.decision.Events = events
			p.Status.LastAttempt = &at.result.ProvisionAttempt
		}
	}
	old, events := state, d.decision.Events
	if policyErr == nil {
		state, d.decision = state.NextAction(in, now)
		p.Status.Policy = policyValues(values)
	} else {
		state, d.decision = state.NextInvalid(in, now)
	}
	d.decision.Events = append(events, d.decision.Events...)
	if reason := d.decision.TimeoutReason; reason != "" {
		began := old.StartedAt
		if began.IsZero() {
			began = now
		}
		p.Status.LastAttempt = &v1alpha1.ProvisionAttempt{
			Number: old.Number, StartedAt: *microTime(began), EndedAt: *microTime(now), Result: string(policy.ResultFailed), Message: reason,
		}
	}
	if d.decision.Repeat {
		for i := range p.Status.Steps {
			p.Status.Steps[i].Input, p.Status.Steps[i].DoneAt, p.Status.Steps[i].Applied, p.Status.Steps[i].Asked = "", nil, 0, ""
		}
	}
	storeState(&p.Status, state)
	setConditions(p, in.Policy, policyErr)
	d.writes = !equalStatus(before, &p.Status)
	if d.decision.Action == policy.WaitUntil {
		d.after = max(time.Millisecond, d.decision.At.Sub(now))
	}
	return d, nil
}

// equalStatus compares two statuses, ignoring conditions missing in before, because cached objects carry
// only some.
func equalStatus(before, after *v1alpha1.ProvisionStatus) bool {
	if len(before.Conditions) == 0 {
		return equality.Semantic.DeepEqual(before, after)
	}
	current := *after
	current.Conditions = nil
	for _, c := range before.Conditions {
		if cond := meta.FindStatusCondition(after.Conditions, c.Type); cond != nil {
			current.Conditions = append(current.Conditions, *cond)
		}
	}
	return equality.Semantic.DeepEqual(before, &current)
}
