// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// newRunning returns a Provision with an attempt of an earlier process.
func newRunning(began time.Time) *v1alpha1.Provision {
	_, p := newProvision("shop", "edge")
	p.Status = v1alpha1.ProvisionStatus{State: v1alpha1.ProvisionRunning, Job: desiredDigest(p), Attempts: 1, AttemptNumber: 7, StartedAt: microTime(began)}
	return p
}

// An attempt that times out while no process runs is recorded like any other.
func TestAnAttemptThatLapsed(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	p := newRunning(now.Add(-time.Hour))
	d, err := (&Reconciler{Config: Config{Cached: fakeAPI(t, interceptor.Funcs{})}}).nextDecision(t.Context(), p, attemptState{}, now)
	if last := p.Status.LastAttempt; err != nil || last == nil || last.Number != 7 || last.Result != "Failed" || !last.EndedAt.Time.Equal(now) || !strings.Contains(last.Message, "interrupted") {
		t.Errorf("got %+v, %v", last, err)
	}
	if d.decision.TimeoutReason == "" || p.Status.State != v1alpha1.ProvisionWaiting || p.Status.NextAttemptAt == nil {
		t.Errorf("got %+v in %+v", d.decision, p.Status)
	}
}

// A reset clears finished steps and requests to the target, but not the inventory.
func TestLogTailAfterAReset(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	_, p := newProvision("shop", "edge")
	p.Annotations = map[string]string{v1alpha1.ResetAnnotation: "1"}
	done := metav1.NewTime(now)
	p.Status = v1alpha1.ProvisionStatus{State: v1alpha1.ProvisionFailed, Job: desiredDigest(p), Attempts: 6, AttemptNumber: 6, Steps: []v1alpha1.StepStatus{
		{Name: "migrate", Input: "x", DoneAt: &done, Applied: 1, Asked: "edge/migrate/1", Inventory: []string{"/ConfigMap/far/a"}},
	}}
	d, err := (&Reconciler{Config: Config{Cached: fakeAPI(t, interceptor.Funcs{})}}).nextDecision(t.Context(), p, attemptState{}, now)
	if status := p.Status.Steps[0]; err != nil || d.decision.Action != policy.StartAttempt || status.Input+status.Asked != "" || status.DoneAt != nil || status.Applied != 0 || len(status.Inventory) != 1 {
		t.Errorf("%v, %+v, %+v", err, d.decision, status)
	}
}

// Without its Namespace in the cache yet, a Provision's Partner and thus its limits are unknown: nothing starts.
func TestANamespaceThatIsNotSeenYet(t *testing.T) {
	api := fakeAPI(t, interceptor.Funcs{})
	if err := api.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	_, p := newProvision("shop", "edge")
	before := p.DeepCopy()
	d, err := (&Reconciler{Config: Config{Cached: api}}).nextDecision(t.Context(), p, attemptState{}, time.Now())
	if err == nil || d.needsAction() || !reflect.DeepEqual(p, before) {
		t.Errorf("got %+v, %v, %+v", d.decision, err, p.Status)
	}
}

// A missing Partner blocks new attempts, and running ones get the built-in timeout.
func TestAPartnerThatIsNotThere(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.PartnerLabel: "retail"}}}
	api := fakeAPI(t, interceptor.Funcs{}, shop)
	r := &Reconciler{Config: Config{Cached: api}}
	_, p := newProvision("shop", "edge")
	d, err := r.nextDecision(t.Context(), p, attemptState{}, now)
	accepted := p.Status.Conditions[0]
	if err != nil || d.startsAttempt() || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, `no Partner "retail"`) {
		t.Errorf("got %+v, %+v, %v", d.decision, accepted, err)
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ProvisionReady); ready.Reason != "Pending" || ready.Message != accepted.Message {
		t.Errorf("the columns of kubectl show %s: %s", ready.Reason, ready.Message)
	}
	p = newRunning(now.Add(-20 * time.Minute))
	if d, err = r.nextDecision(t.Context(), p, attemptState{}, now); err != nil || d.startsAttempt() || d.after != 10*time.Minute || p.Status.State != v1alpha1.ProvisionRunning {
		t.Errorf("with ten minutes left: %+v, %v", d, err)
	}
	if _, err = r.nextDecision(t.Context(), p, attemptState{running: true}, now.Add(time.Hour)); err != nil || p.Status.State != v1alpha1.ProvisionRunning {
		t.Errorf("one at work has its own timeout: %s, %v", p.Status.State, err)
	}
	if _, err = r.nextDecision(t.Context(), p, attemptState{}, now.Add(10*time.Minute)); err != nil || p.Status.State != v1alpha1.ProvisionWaiting || p.Status.LastAttempt == nil {
		t.Errorf("then: %+v, %v", p.Status, err)
	}
	if err := api.Create(t.Context(), &v1alpha1.Partner{ObjectMeta: metav1.ObjectMeta{Name: "retail"}}); err != nil {
		t.Fatal(err)
	}
	if d, err = r.nextDecision(t.Context(), p, attemptState{}, now.Add(time.Hour)); err != nil || d.decision.Action != policy.StartAttempt {
		t.Errorf("once it is there: %+v, %v", d.decision, err)
	}
}

// The log of an attempt interrupted by shutdown is saved.
func TestTheLogOfAnAttemptThatIsBrokenOff(t *testing.T) {
	_, p := newProvision("shop", "edge")
	p.Spec.Target.KubeconfigSecret = &v1alpha1.KubeconfigSecret{Name: "edge", Key: "kubeconfig"}
	ctx, stop := context.WithCancel(t.Context())
	api := fakeAPI(t, interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		stop()
		return ctx.Err()
	}, Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.Patch(ctx, o, patch, opts...)
	}}, p)
	r := New(Config{Live: api, Writer: api, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if end := r.runAttempt(ctx, reconcilePlan{p: p, decision: policy.Decision{At: time.Now().Add(time.Minute)}}); end != nil {
		t.Errorf("it has come to an end: %+v", end)
	}
	var logs corev1.ConfigMapList
	if err := api.List(t.Context(), &logs); err != nil || len(logs.Items) != 1 || !strings.Contains(logs.Items[0].Data["log"], "begins") {
		t.Errorf("got %+v, %v", logs.Items, err)
	}
}

// A wait for the target's Retry-After is visible as such.
func TestAWaitForRetryAfterIsShown(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for about, tt := range map[string]struct {
		notBefore time.Duration
		want      string
	}{
		"longer than the wait":  {time.Hour, "the target allows no attempt before 2026-11-23T13:00:00Z (Retry-After); the last one failed: too many requests"},
		"shorter than the wait": {time.Second, "too many requests"},
		"none":                  {0, "too many requests"},
	} {
		_, p := newProvision("shop", "edge")
		p.Status = v1alpha1.ProvisionStatus{
			State: v1alpha1.ProvisionWaiting, Attempts: 1, WaitingSince: microTime(now), LastAttempt: &v1alpha1.ProvisionAttempt{Message: "too many requests"},
		}
		if tt.notBefore > 0 {
			p.Status.NotBefore = microTime(now.Add(tt.notBefore))
		}
		setConditions(p, policy.DefaultPolicy(), nil)
		if got := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ProvisionReady).Message; got != tt.want {
			t.Errorf("%s: %q, want %q", about, got, tt.want)
		}
	}
}
