// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/pool/schedule"
)

func pod(uid string, readyAt *time.Time) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(uid)}}
	if readyAt != nil {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(*readyAt)}}
	}
	return p
}

// The time of a gate runs from when the containers are ready, by the earlier of two clocks: a node's that is ahead does
// not extend it, and a restart of Weir does not begin it again.
func TestWaitingSince(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	earlier, ahead, none := now.Add(-time.Minute), now.Add(time.Hour), time.Time{}
	r := New(Config{})
	for i, tt := range []struct {
		pod  *corev1.Pod
		at   time.Duration
		want time.Time
	}{
		{pod("a", nil), 0, none},
		{pod("a", &ahead), time.Second, now.Add(time.Second)},
		{pod("a", &ahead), time.Minute, now.Add(time.Second)},
		{pod("a", &earlier), time.Minute, earlier},
		{pod("a", &none), time.Minute, now.Add(time.Second)},
		{pod("a", nil), 2 * time.Minute, none}, // a container has failed
		{pod("a", &ahead), 3 * time.Minute, now.Add(3 * time.Minute)},
		{pod("b", &ahead), 4 * time.Minute, now.Add(4 * time.Minute)}, // recreated
	} {
		if _, got := r.recordWaiting(tt.pod, nil, now.Add(tt.at)); !got.Equal(tt.want) {
			t.Errorf("%d: since %s, want %s", i, got, tt.want)
		}
	}
	if n := r.CountWaiting(); n != 1 {
		t.Errorf("%d waiting", n)
	}
	r.forget(types.NamespacedName{Namespace: "shop", Name: "web"})
	if n := r.CountWaiting(); n != 0 {
		t.Errorf("%d waiting, want none", n)
	}
}

// The next decision depends on the pools of the last one.
func TestPoolsOfAWaitingGate(t *testing.T) {
	r := New(Config{})
	a, b := schedule.Ref{Name: "a"}, schedule.Ref{Name: "b"}
	r.recordWaiting(pod("a", nil), []schedule.Ref{a}, time.Now())
	r.recordWaiting(pod("a", nil), []schedule.Ref{b}, time.Now())
	if got := r.waitingFor(a); len(got) != 0 {
		t.Errorf("%v wait for a pool of the past", got)
	}
	if got := r.waitingFor(b); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("%v wait", got)
	}
}

func TestPodsWithoutADecision(t *testing.T) {
	gated := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := pod("a", nil)
		p.Spec.NodeName, p.Spec.ReadinessGates = "n1", []corev1.PodReadinessGate{{ConditionType: "weir.dev/in-pool"}}
		edit(p)
		return p
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"gated":         {gated(func(*corev1.Pod) {}), true},
		"not scheduled": {gated(func(p *corev1.Pod) { p.Spec.NodeName = "" }), false},
		"without gate":  {gated(func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }), false},
		"deleted":       {gated(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), false},
		"ended":         {gated(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false},
		"failed":        {gated(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"open": {gated(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "weir.dev/in-pool", Status: corev1.ConditionTrue}}
		}), false},
		"false": {gated(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "weir.dev/in-pool", Status: corev1.ConditionFalse}}
		}), true},
	} {
		if got := needsDecision(tt.pod); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// patches records the patches of statuses.
type patches struct {
	client.SubResourceWriter

	sent []string
	err  error
}

func (p *patches) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	p.sent = append(p.sent, obj.GetNamespace()+"/"+obj.GetName()+" "+string(data))
	return errors.Join(err, p.err)
}

// One condition of the pod with this UID is written, as true, and counted if that succeeds.
func TestOpeningAGate(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for name, tt := range map[string]struct {
		err           error
		counts, fails bool
	}{
		"written":    {nil, true, false},
		"deleted":    {apierrors.NewNotFound(resource, "web"), false, false},
		"recreated":  {apierrors.NewConflict(resource, "web", errors.New("UID")), false, false},
		"no right":   {apierrors.NewForbidden(resource, "web", errors.New("no")), false, true},
		"overloaded": {apierrors.NewTooManyRequests("later", 1), false, true},
	} {
		status, counted := &patches{err: tt.err}, 0
		r := New(Config{Status: status, CountOpened: func(Reason) { counted++ }, Log: slog.New(slog.DiscardHandler)})
		err := r.openGate(t.Context(), pod("a", nil), Decision{Opens: true, Reason: InPool, Message: "why"})
		if (err != nil) != tt.fails || (counted == 1) != tt.counts {
			t.Errorf("%s: %v, counted %d", name, err, counted)
		}
		for _, part := range []string{`shop/web {"metadata":{"uid":"a"},"status":{"conditions":[{"type":"weir.dev/in-pool","status":"True",`, `"reason":"InPool","message":"why"}]}}`} {
			if len(status.sent) != 1 || !strings.Contains(status.sent[0], part) {
				t.Errorf("%s: sent %v, want %s", name, status.sent, part)
			}
		}
	}
}
