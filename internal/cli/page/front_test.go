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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// many returns n pools, a quarter of them failed.
func many(n int) status.Snapshot {
	seen := status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}}
	for i := range n {
		state, reason := v1alpha1.ReasonInSync, "in sync with 3 nodes"
		if i%4 == 0 {
			state, reason = v1alpha1.ReasonRetrying, fmt.Sprintf("the last attempt failed: write pool %d: 429 TooManyRequests", i)
		}
		p := poolOf(fmt.Sprintf("team-%03d", i%100), fmt.Sprintf("pool-%05d", i), fmt.Sprintf("lb-%02d", i%80), state, reason, 3, 2)
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
func TestCachedPageSize(t *testing.T) {
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
func TestNotesAreNotProblems(t *testing.T) {
	f := newFrontPage(status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}, Services: []corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: []string{metadata.ServiceFinalizer}},
		Status: corev1.ServiceStatus{
			LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}},
			Conditions:   []metav1.Condition{{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonNoEndpoints}},
		},
	}}})
	if f.Class != stateInSync || len(f.Causes) != 0 || len(f.Notes) != 1 || f.Notes[0].All[0].Class != stateInSync {
		t.Errorf("%s, %+v, %+v", f.Class, f.Causes, f.Notes)
	}
}

// Paused pools are listed separately, with end and reason.
func TestPausedPoolsAreListedSeparately(t *testing.T) {
	p := poolOf("shop", "db", "kubernetes", v1alpha1.ReasonPaused, "paused", 3, 2)
	p.Spec.Pause = &v1alpha1.Pause{Why: "the <b>database</b> moves", By: "jane", Until: new(metav1.NewTime(time.Now().Add(time.Hour)))}
	seen := status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}, Pools: []v1alpha1.BackendPool{*p}}
	f := newFrontPage(seen)
	if f.Class != stateInSync || len(f.Paused) != 1 || f.Balancers[0].Paused != 1 || f.Balancers[0].InSync != 0 {
		t.Errorf("%s, %+v, %+v", f.Class, f.Paused, f.Balancers)
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

// Whether Weir runs is a state of its own, whatever the state of the pools.
func TestControllerState(t *testing.T) {
	renewed := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		leader     status.Leader
		want, text string
	}{
		"a leader":    {status.Leader{Known: true, Holder: "weir-0"}, stateInSync, "Weir runs: weir-0 leads."},
		"no leader":   {status.Leader{Known: true, Namespace: "weir-system", Last: "weir-0", Renewed: renewed}, stateFailed, "Weir does not run: No process of Weir leads."},
		"no right":    {status.Leader{}, stateUnknown, "The leader is unknown: you may not list Leases."},
		"no Lease":    {status.Leader{Known: true}, stateUnknown, "It is unknown whether Weir runs: "},
		"two leaders": {status.Leader{Known: true, Holder: "weir-0", Rivals: []status.Leader{{Known: true, Holder: "other"}}}, stateFailed, "two Weirs write at once"},
	} {
		p := poolOf("shop", "db", "kubernetes", v1alpha1.ReasonInSync, "in sync with 2 nodes", 2, 2)
		f := newFrontPage(status.Snapshot{At: time.Now(), Leader: tt.leader, Pools: []v1alpha1.BackendPool{*p}})
		if f.RunningClass != tt.want || !strings.HasPrefix(f.Running, tt.text) || strings.Contains(f.Verdict, "leads") {
			t.Errorf("%s: %s, %q; %q", name, f.RunningClass, f.Running, f.Verdict)
		}
	}
}

// A Service has the state of its conditions; one of another controller has none.
func TestStatesOfServices(t *testing.T) {
	condition := func(kind, reason string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Reason: reason, Status: status}
	}
	for _, tt := range []struct {
		want, state string
		conditions  []metav1.Condition
	}{
		{stateUnknown, "no condition of Weir", nil},
		{stateInSync, "Programmed", []metav1.Condition{condition(servicelb.TypeAccepted, "Accepted", metav1.ConditionTrue), condition(servicelb.TypeProgrammed, "Programmed", metav1.ConditionTrue)}},
		{stateUpdating, "RetryAfter", []metav1.Condition{condition(servicelb.TypeProgrammed, "RetryAfter", metav1.ConditionFalse), condition(servicelb.TypeAccepted, "Accepted", metav1.ConditionTrue)}},
		{stateUpdating, "Invalid", []metav1.Condition{condition(servicelb.TypeAccepted, "Invalid", metav1.ConditionFalse), condition(servicelb.TypeProgrammed, "Programmed", metav1.ConditionTrue)}},
	} {
		row := newServiceRow(&corev1.Service{Status: corev1.ServiceStatus{Conditions: tt.conditions}}, nil, false)
		if row.Class != tt.want || row.State != tt.state {
			t.Errorf("%+v, want %s, %s", row, tt.want, tt.state)
		}
	}
}

// A Service without a pool of its own is on the load balancer of its annotation.
func TestServicesOnTheSharedPool(t *testing.T) {
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"}}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	seen := status.Snapshot{At: time.Now(), Services: []corev1.Service{s}}
	if rows := newServiceRows(seen, status.NewReport(seen)); len(rows) != 1 || rows[0].Balancers != "kubernetes" {
		t.Errorf("%+v", rows)
	}
}

// A deleted Service of which Azure still has resources is in progress, and wrong after a failure, whatever its conditions were.
func TestDeletedServices(t *testing.T) {
	now := time.Now()
	s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: []string{metadata.ServiceFinalizer}}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	s.Status.Conditions = []metav1.Condition{{Type: servicelb.TypeProgrammed, Reason: "Programmed", Status: metav1.ConditionTrue}}
	for age, want := range map[time.Duration]string{time.Minute: stateUpdating, time.Hour: stateFailed} {
		s.DeletionTimestamp = new(metav1.NewTime(now.Add(-age)))
		f := newFrontPage(status.Snapshot{At: now, Services: []corev1.Service{s}})
		if row := f.services[0]; row.Class != want || row.State != servicelb.ConditionReasonLeaving || !row.Since.Equal(s.DeletionTimestamp.Time) || f.Class != want {
			t.Errorf("%s: %+v, page %s", age, row, f.Class)
		}
	}
}

// Only a bound of an age may be known.
func TestAgesOfProblems(t *testing.T) {
	now := time.Now()
	for want, problem := range map[string]status.Problem{
		"for 2m":       {Since: now.Add(-2 * time.Minute)},
		"for up to 3m": {NotBefore: now.Add(-3 * time.Minute)},
	} {
		var out strings.Builder
		body := pagePart{pageData{Root: "/", At: now}, []problemObject{{Problem: problem}}}
		if err := templates["front"].ExecuteTemplate(&out, "objects", body); err != nil || !strings.Contains(out.String(), ">"+want+"</span>") {
			t.Errorf("%v, no %q in\n%s", err, want, out.String())
		}
	}
}

// A condition has the time of its status: where its reason may have been another one, that is a bound.
func TestAgesOfRows(t *testing.T) {
	now := time.Now()
	at := func(kind, reason string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Reason: reason, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
	}
	problem := status.Problem{Kind: "Gateway", Since: now.Add(-time.Minute)}
	pool := func(reason string, problems map[string]status.Problem) (since, notBefore time.Time) {
		row := newPoolRow(&v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: v1alpha1.BackendPoolStatus{Conditions: at(v1alpha1.ConditionSynced, reason, metav1.ConditionFalse)}}, problems, now)
		return row.Since, row.NotBefore
	}
	gateway := func(problem status.Problem) (since, notBefore time.Time) {
		row := newGatewayRow(&gatewayv1.Gateway{Status: gatewayv1.GatewayStatus{Conditions: at("Programmed", "Programmed", metav1.ConditionTrue)}}, problem)
		return row.Since, row.NotBefore
	}
	service := newServiceRow(&corev1.Service{Status: corev1.ServiceStatus{Conditions: at(servicelb.TypeProgrammed, "RetryAfter", metav1.ConditionFalse)}}, nil, false)
	wants := func(about string, since, notBefore time.Time, want string) {
		t.Helper()
		var out strings.Builder
		if err := templates["front"].ExecuteTemplate(&out, "age", pagePart{pageData{At: now}, status.Problem{Since: since, NotBefore: notBefore}}); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q, want %q", about, err, out.String(), want)
		}
	}
	wants("a Service", service.Since, service.NotBefore, "for up to 60m")
	since, notBefore := pool(v1alpha1.ReasonInSync, nil)
	wants("a pool in sync", since, notBefore, "for 60m")
	since, notBefore = pool(v1alpha1.ReasonUpdating, nil)
	wants("a pool that waits", since, notBefore, "for up to 60m")
	since, notBefore = pool(v1alpha1.ReasonFailed, map[string]status.Problem{"shop/web": problem})
	wants("a pool that failed", since, notBefore, "for 60s")
	since, notBefore = gateway(status.Problem{})
	wants("a Gateway", since, notBefore, "for up to 60m")
	since, notBefore = gateway(problem)
	wants("a Gateway with a problem", since, notBefore, "for 60s")
}

// A Provision that failed is listed, without a link: it has no page.
func TestAFailedProvisionIsListed(t *testing.T) {
	seen := status.Snapshot{At: time.Now(), Leader: status.Leader{Known: true, Holder: "weir-0"}}
	seen.Provisioner.Failed = []v1alpha1.Provision{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "store-17"}}}
	var out strings.Builder
	if err := templates["front"].Execute(&out, pageData{Root: "/", At: seen.At, Body: newFrontPage(seen)}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if _, table, _ := strings.Cut(text, "<th scope=\"col\">Object</th>"); !strings.Contains(text, "</span> shop/store-17</th>") || strings.Contains(table, "Members") {
		t.Errorf("%s", text)
	}
}

// BenchmarkFront judges and sorts ten thousand pools.
func BenchmarkFront(b *testing.B) {
	seen := many(10_000)
	for b.Loop() {
		newFrontPage(seen)
	}
}

// The verdict names the cause to fix first, and the column of the next try is there only if one is known.
func TestTheFirstFixIsNamed(t *testing.T) {
	seen := many(4)
	seen.Pools = append(seen.Pools, *poolOf("shop", "gone", "edge", v1alpha1.ReasonPoolNotFound, "no such pool", 0, 0))
	if f := newFrontPage(seen); !strings.HasPrefix(f.Mends, v1alpha1.ReasonPoolNotFound+": see whether") {
		t.Errorf("fix first: %q", f.Mends)
	}
	for _, next := range []time.Time{{}, seen.At} {
		rows := []problemObject{{Problem: status.Problem{Kind: "BackendPool"}}, {Next: next}}
		var out strings.Builder
		if err := templates["front"].ExecuteTemplate(&out, "objects", pagePart{pageData{At: seen.At}, rows}); err != nil {
			t.Fatal(err)
		}
		want := 3 // the header, and each row
		if next.IsZero() {
			want = 0
		}
		if got := strings.Count(out.String(), "Next try"); got != want {
			t.Errorf("next try %v: %d cells in\n%s", next, got, out.String())
		}
	}
}
