// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/provision"
	"weir.dev/weir/internal/words"
)

// reconcile decides from the cached Provision, which costs no request, and again from the live one
// before it acts.
func (r *Room) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var p v1alpha1.Provision
	if err := r.Cached.Get(ctx, req.NamespacedName, &p); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	r.attempts.abandon(req.NamespacedName, p.UID)
	if p.DeletionTimestamp != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	at, wanted := r.look(&p), view.CachedWantedOf(&p)
	at.wanted = &wanted
	seen, err := r.decide(ctx, &p, at, time.Now())
	if err == nil && seen.acts() {
		seen, err = r.act(ctx, req)
	}
	if err == nil && seen.p != nil {
		seen.after = r.knock(seen.p, seen.job, seen.policy, seen.after)
	}
	return workqueue.Result(ctx, err, seen.after)
}

func (r *Room) forget(key types.NamespacedName) {
	r.attempts.abandon(key, "")
	r.knocks.forget(key)
}

func (r *Room) look(p *v1alpha1.Provision) looked {
	at := r.attempts.look(p)
	at.knocks = r.knocks.of(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	return at
}

type decided struct {
	p        *v1alpha1.Provision // with the status to record
	writes   bool
	decision provision.Decision
	policy   provision.Policy
	job      string
	ended    *ended
	after    time.Duration // requeue delay; 0 waits for a change
}

func (d decided) acts() bool { return d.writes || d.begins() || d.ended != nil }

func (d decided) begins() bool {
	return d.decision.Do == provision.Begin || d.decision.Do == provision.Resume
}

func (r *Room) act(ctx context.Context, req reconcile.Request) (decided, error) {
	p := &v1alpha1.Provision{}
	if err := r.Live.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			return decided{}, nil
		}
		return decided{}, err
	}
	if p.DeletionTimestamp != nil {
		return decided{}, nil
	}
	key := req.NamespacedName
	reserved := r.attempts.reserve(key, p.UID)
	at := r.look(p)
	at.busy = at.busy || !reserved
	d, err := r.decide(ctx, p, at, time.Now())
	if err == nil && d.writes {
		err = r.apply(ctx, d.p)
	}
	if err != nil || !d.begins() {
		if reserved {
			r.attempts.release(key)
		}
		if err != nil {
			return decided{}, err
		}
	}
	if d.ended != nil {
		r.attempts.settled(key, d.ended)
	}
	if d.decision.Lapsed != "" {
		r.attempts.count(provision.DidFail)
	}
	for _, w := range d.decision.Told {
		kind := corev1.EventTypeNormal
		if w.Warning {
			kind = corev1.EventTypeWarning
		}
		_ = r.writes.Wait(ctx, p.Namespace) // best effort: emit the event even during shutdown
		r.Events.Add(d.p, kind, w.Reason, words.Sentence(w.Text, words.MaxMessage))
	}
	if d.begins() {
		own := d
		own.p = &v1alpha1.Provision{ObjectMeta: view.Identity(d.p.ObjectMeta, nil), Spec: d.p.Spec, Status: *d.p.Status.DeepCopy()}
		r.attempts.start(key, func(ctx context.Context) *ended { return r.attempt(ctx, own) })
	}
	if d.ended != nil && d.after == 0 && !d.begins() {
		d.after = time.Millisecond // requeue now: a slot has become free
	}
	return d, nil
}

func (r *Room) decide(ctx context.Context, p *v1alpha1.Provision, at looked, now time.Time) (decided, error) {
	policy, values, policyErr, err := r.resolve(ctx, p)
	if err != nil {
		return decided{}, err
	}
	if at.wanted == nil {
		wanted := view.WantedOf(p)
		at.wanted = &wanted
	}
	policyErr = errors.Join(policyErr, at.wanted.Refused)
	before := p.Status.DeepCopy()
	state, d := stateOf(&p.Status), decided{p: p, policy: policy, job: at.wanted.Job}
	in := provision.Input{Job: at.wanted.Job, Policy: policy, Requests: requestsOf(p), AtWork: at.work, Busy: at.busy, Knocks: at.knocks}
	if at.ended != nil {
		if policyErr != nil {
			in.Policy = at.ended.policy
		}
		d.ended, in.AtWork = at.ended, false
		if state.Phase == provision.Running && state.Number == at.ended.Number {
			var events []provision.Word
			state, events = state.End(at.ended.outcome, in, at.ended.why(), now)
			d.decision.Told = events
			p.Status.LastAttempt = &at.ended.ProvisionAttempt
		}
	}
	was, events := state, d.decision.Told
	if policyErr == nil {
		state, d.decision = state.Next(in, now)
		p.Status.Policy = policyOf(values)
	} else {
		state, d.decision = state.Lapse(in, now)
	}
	d.decision.Told = append(events, d.decision.Told...)
	if why := d.decision.Lapsed; why != "" {
		began := was.StartedAt
		if began.IsZero() {
			began = now
		}
		p.Status.LastAttempt = &v1alpha1.ProvisionAttempt{
			Number: was.Number, StartedAt: *microTime(began), EndedAt: *microTime(now), Result: string(provision.DidFail), Message: why,
		}
	}
	if d.decision.Anew {
		for i := range p.Status.Steps {
			p.Status.Steps[i].Input, p.Status.Steps[i].DoneAt, p.Status.Steps[i].Applied, p.Status.Steps[i].Asked = "", nil, 0, ""
		}
	}
	keep(&p.Status, state)
	tell(p, in.Policy, policyErr)
	d.writes = !same(before, &p.Status)
	if d.decision.Do == provision.Await {
		d.after = max(time.Millisecond, d.decision.At.Sub(now))
	}
	return d, nil
}

// same compares two statuses, ignoring conditions missing in before, because cached objects carry
// only some.
func same(before, after *v1alpha1.ProvisionStatus) bool {
	if len(before.Conditions) == 0 {
		return equality.Semantic.DeepEqual(before, after)
	}
	now := *after
	now.Conditions = nil
	for _, c := range before.Conditions {
		if is := meta.FindStatusCondition(after.Conditions, c.Type); is != nil {
			now.Conditions = append(now.Conditions, *is)
		}
	}
	return equality.Semantic.DeepEqual(before, &now)
}
