// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app/status"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
)

// many returns n pools, a quarter of them failed.
func many(n int) status.Snapshot {
	seen := status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}}
	for i := range n {
		state, why := v1alpha1.ReasonLevel, "level with 3 nodes"
		if i%4 == 0 {
			state, why = v1alpha1.ReasonRetrying, fmt.Sprintf("the last attempt failed: write pool %d: 429 TooManyRequests", i)
		}
		p := poolOf(fmt.Sprintf("team-%03d", i%100), fmt.Sprintf("pool-%05d", i), fmt.Sprintf("lb-%02d", i%80), state, why, 3, 2)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 4000))}}
		p.Status.WrittenAddresses = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
		if i%4 == 0 {
			parked(p, "TooManyRequests", time.Minute)
		}
		seen.Pools = append(seen.Pools, *p)
	}
	return seen
}

// The cached front page of ten thousand pools is below 8 MiB.
func TestWhatIsKept(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	f := newFrontPage(many(10_000))
	kept := heap() - before
	if kept > 8<<20 || kept < 1<<20 {
		t.Errorf("%d bytes", kept)
	}
	t.Logf("%d KiB", kept>>10)
	runtime.KeepAlive(f)
}

// A problem that only the Service's owner can fix is a note.
func TestANoteIsNotWrong(t *testing.T) {
	f := newFrontPage(status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}, Services: []corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: []string{view.ServiceFinalizer}},
		Status: corev1.ServiceStatus{
			LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}},
			Conditions:   []metav1.Condition{{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonNoEndpoints}},
		},
	}}})
	if f.Is != stateInSync || len(f.Causes) != 0 || len(f.Notes) != 1 || f.Notes[0].All[0].Is != stateInSync {
		t.Errorf("%s, %+v, %+v", f.Is, f.Causes, f.Notes)
	}
}

// Paused pools are listed separately, with end and reason.
func TestWhatIsPausedIsShownApart(t *testing.T) {
	p := poolOf("shop", "db", "kubernetes", v1alpha1.ReasonPaused, "paused", 3, 2)
	p.Spec.Pause = &v1alpha1.Pause{Why: "the <b>database</b> moves", By: "jane", Until: new(metav1.NewTime(time.Now().Add(time.Hour)))}
	seen := status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}, Pools: []v1alpha1.BackendPool{*p}}
	f := newFrontPage(seen)
	if f.Is != stateInSync || len(f.Paused) != 1 || f.Balancers[0].Paused != 1 || f.Balancers[0].Level != 0 {
		t.Errorf("%s, %+v, %+v", f.Is, f.Paused, f.Balancers)
	}
	var out strings.Builder
	if err := templates["front"].Execute(&out, pageData{At: seen.At, Body: f}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<h2 id="paused">`, "in 59", "jane", "the &lt;b&gt;database", "1 pool, 1 paused"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in %s", part, out.String())
		}
	}
}

// BenchmarkFront judges and sorts ten thousand pools.
func BenchmarkFront(b *testing.B) {
	seen := many(10_000)
	for b.Loop() {
		newFrontPage(seen)
	}
}
