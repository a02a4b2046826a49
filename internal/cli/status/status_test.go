// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// server is an API server with these objects.
func server(t *testing.T, have ...client.Object) client.WithWatch {
	t.Helper()
	scheme := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(have...).Build()
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// pool returns a pool whose state has this age.
func pool(name, state, reason string, age time.Duration) v1alpha1.BackendPool {
	return v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: name}},
		Status: v1alpha1.BackendPoolStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionSynced, Reason: state, Message: reason, LastTransitionTime: ago(age),
		}}},
	}
}

func failed(name, code string, age time.Duration) v1alpha1.BackendPool {
	p := pool(name, v1alpha1.ReasonRetrying, "the last attempt failed: "+code, age)
	p.Status.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Retriable", Code: code, Since: ago(age)}
	return p
}

// later returns a failed pool of which a later change waits.
func later(p v1alpha1.BackendPool) v1alpha1.BackendPool {
	p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = v1alpha1.ReasonPace, "a change waits"
	return p
}

// notBefore returns a pool that is retried after d.
func notBefore(p v1alpha1.BackendPool, d time.Duration) v1alpha1.BackendPool {
	p.Status.NextEligibleAt = new(ago(-d))
	return p
}

// exhausted returns a pool that has used up its retries.
func exhausted(p v1alpha1.BackendPool) v1alpha1.BackendPool {
	p.Status.Conditions[0].Reason = v1alpha1.ReasonFailed
	return p
}

// paused returns a pool paused two hours ago.
func paused(name string, pause *v1alpha1.Pause) v1alpha1.BackendPool {
	p, at := pool(name, v1alpha1.ReasonPaused, "paused: the pool remains unchanged in Azure", time.Minute), ago(2*time.Hour)
	p.Spec.Paused, p.Spec.Pause = true, pause
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, LastTransitionTime: at})
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "weir", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:poolName":{}}}`)},
		{Manager: "kubectl-patch", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)},
	}
	return p
}

// until returns a pause that ends after d.
func until(d time.Duration) *v1alpha1.Pause {
	return &v1alpha1.Pause{Until: new(ago(-d)), Why: "the \x1b[2Jdatabase moves", By: "jane@example.com"}
}

func contested(name string) v1alpha1.BackendPool {
	p := pool(name, v1alpha1.ReasonInSync, "in sync with 2 nodes", time.Hour)
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionContested, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUndone, Message: "somebody keeps taking 10.0.0.1 out", LastTransitionTime: ago(5 * time.Minute),
	})
	return p
}

func newService(name string, finalizers []string, conditions ...metav1.Condition) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Finalizers: finalizers},
		Status:     corev1.ServiceStatus{Conditions: conditions, LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}},
	}
}

var leads = Leader{Known: true, Holder: "weir-0", Namespace: "weir-system"}

// Problems by cause, and objects in progress.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name     string
		seen     Snapshot
		causes   string // each with its objects
		underWay int
	}{
		{"nothing is there", Snapshot{Leader: leads}, "", 0},
		{"in sync", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{pool("web", v1alpha1.ReasonInSync, "in sync with 2 nodes", time.Hour)}}, "", 0},
		{"nobody leads", Snapshot{Leader: Leader{Known: true, Namespace: "weir-system"}}, "NoLeader[weir-controller]", 0},
		{"it is not known who leads", Snapshot{}, "", 0},
		{"there is no Lease", Snapshot{Leader: Leader{Known: true}}, "", 0},
		{"on its way", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			pool("a", v1alpha1.ReasonUpdating, "adding 1", time.Minute), pool("b", v1alpha1.ReasonPace, "", time.Minute), pool("c", v1alpha1.ReasonPending, "", 9*time.Minute),
		}}, "", 3},
		{"on its way for too long", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{pool("a", v1alpha1.ReasonUpdating, "adding 1", 10*time.Minute)}}, "Updating[a]", 0},
		{"two causes, the one with most first", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			failed("a", "TooManyRequests", time.Hour), failed("b", "AuthorizationFailed", time.Minute), failed("c", "AuthorizationFailed", time.Hour),
		}}, "AuthorizationFailed[c b] TooManyRequests[a]", 0},
		{"a retry follows by itself", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			failed("a", "TooManyRequests", time.Minute), failed("b", "PreconditionFailed", 9*time.Minute), failed("c", "TooManyRequests", 10*time.Minute), later(failed("d", "TooManyRequests", time.Minute)), notBefore(failed("e", "TooManyRequests", time.Minute), 9*time.Minute),
		}}, "TooManyRequests[c e]", 3},
		{"no retry follows", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{exhausted(failed("a", "TooManyRequests", time.Minute))}}, "TooManyRequests[a]", 0},
		{"nobody leads, before all else", Snapshot{Leader: Leader{Known: true, Namespace: "weir-system"}, Pools: []v1alpha1.BackendPool{
			failed("a", "TooManyRequests", time.Hour), failed("b", "TooManyRequests", time.Hour),
		}}, "NoLeader[weir-controller] TooManyRequests[a b]", 0},
		{"paused", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{paused("a", nil), paused("b", until(time.Hour))}}, "", 0},
		{"paused, and about to go on", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{paused("a", until(-9*time.Minute))}}, "", 0},
		{"paused for longer than it was to be", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{paused("a", until(-10*time.Minute))}}, "PauseOver[a]", 0},
		{"in sync, and contested", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{contested("a")}}, "Contested[a]", 0},
		{"in sync without a node", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			pool("a", v1alpha1.ReasonInSync, "in sync with 2 nodes; left out: n3 has no InternalIP of IPv4", time.Hour),
		}}, "NodesLeftOut[a]", 0},
		{"in sync, and labels keep nodes out", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			pool("a", v1alpha1.ReasonInSync, "in sync with 2 nodes; kept out: node cp: it is a control-plane node", time.Hour),
		}}, "", 0},
		{"in sync, and labels keep all nodes out", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{
			pool("a", v1alpha1.ReasonInSync, "in sync with no nodes; kept out: node cp: it is a control-plane node", time.Hour),
		}}, "NoNodeLeft[a]", 0},
		{"Weir has said nothing", Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(time.Hour)}}}}, "Pending[a]", 0},
		{"a Service of another owner's", Snapshot{Leader: leads, Services: []corev1.Service{newService("web", nil, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse})}}, "", 0},
		{"a Service that is contested", Snapshot{Leader: leads, Services: []corev1.Service{
			newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: metadata.ConditionConflict, Status: metav1.ConditionTrue, Reason: "LoadBalancerContested"}),
		}}, "LoadBalancerContested[web]", 0},
		{"a Service that was refused", Snapshot{Leader: leads, Services: []corev1.Service{
			newService("web", nil,
				metav1.Condition{Type: servicelb.TypeAccepted, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonInvalid},
				metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonNotAccepted}),
		}}, "NotAccepted[web]", 0},
		{"a Service that Azure is asked for", Snapshot{Leader: leads, Services: []corev1.Service{
			newService("web", nil, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonUpdating, LastTransitionTime: ago(time.Minute)}),
		}}, "", 1},
		{"and for too long", Snapshot{Leader: leads, Services: []corev1.Service{
			newService("web", nil, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonUpdating, LastTransitionTime: ago(time.Hour)}),
		}}, "Updating[web]", 0},
		{"a Service as it should be", Snapshot{Leader: leads, Services: []corev1.Service{
			newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue}),
		}}, "", 0},
	} {
		tt.seen.At = noon
		r := NewReport(tt.seen)
		var got []string
		for _, c := range r.Causes {
			var names []string
			for _, o := range c.Objects {
				names = append(names, o.Name)
			}
			got = append(got, fmt.Sprintf("%s%v", c.Name, names))
		}
		if text := strings.Join(got, " "); text != tt.causes || r.InSync != (tt.causes == "") || r.Pools.UnderWay+r.Services.UnderWay != tt.underWay {
			t.Errorf("%s: %q, in sync %t, %d under way; want %q, %d", tt.name, text, r.InSync, r.Pools.UnderWay+r.Services.UnderWay, tt.causes, tt.underWay)
		}
	}
}

// A Service without endpoints is a note in text and JSON, not a problem.
func TestAServiceWithoutEndpointsIsNoFault(t *testing.T) {
	silent := metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonNoEndpoints, Message: "no endpoint is ready"}
	r := NewReport(Snapshot{At: noon, Leader: leads, Services: []corev1.Service{
		newService("web", []string{metadata.ServiceFinalizer}, silent), newService("ok", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue}),
	}})
	var text, program bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&program)); err != nil {
		t.Fatal(err)
	}
	const want = `In sync: 0 BackendPools, 2 Services. weir-0 leads.

Notes:

NoEndpoints: no endpoint is ready
  What to do: kubectl get endpointslices -n shop -l kubernetes.io/service-name=web shows which pods the selector of the Service finds, if any, and which are ready
  service shop/web   NoEndpoints
`
	if !r.InSync || text.String() != want || !strings.Contains(program.String(), `"notes": [`) {
		t.Errorf("in sync %t\n%s\n%s", r.InSync, text.String(), program.String())
	}
}

// A misspelled annotation, which could leave a Service public, is a note.
func TestUnknownAnnotationIsNoted(t *testing.T) {
	misspelled := newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue})
	misspelled.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-intern": "true"}
	others := misspelled.DeepCopy()
	others.Name, others.Finalizers, others.Status.Conditions = "of-another-controller", nil, nil
	r := NewReport(Snapshot{At: noon, Leader: leads, Services: []corev1.Service{misspelled, *others}})
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	const want = `
Notes:

UnknownAnnotation: without effect: service.beta.kubernetes.io/azure-load-balancer-intern
  What to do: correct the name, or remove the annotation: docs/reference/service-annotations.md has all names
  service shop/web   UnknownAnnotation
`
	if _, notes, _ := strings.Cut(text.String(), "leads.\n"); !r.InSync || notes != want {
		t.Errorf("in sync %t:\n%s", r.InSync, text.String())
	}
}

// Problems despite True conditions: an unrestricted Service, and an in-sync pool that cannot have nodes.
func TestHiddenProblems(t *testing.T) {
	open := metav1.Condition{Type: servicelb.TypeAccepted, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonOpen, Message: "restrictions without effect"}
	r := NewReport(Snapshot{
		At: noon, Leader: leads, Services: []corev1.Service{newService("web", []string{metadata.ServiceFinalizer}, open)},
		Pools: []v1alpha1.BackendPool{
			pool("bare", v1alpha1.ReasonInSync, "in sync with no nodes; left out: node n1: it has no InternalIP", time.Minute),
			pool("some", v1alpha1.ReasonInSync, "in sync with 2 nodes; left out: node n1: it has no InternalIP", time.Minute),
		},
	})
	var causes []string
	for _, c := range r.Causes {
		if c.Fix == "" {
			t.Errorf("%s: nothing helps", c.Name)
		}
		causes = append(causes, c.Name+" "+c.Objects[0].Name)
	}
	if got := strings.Join(causes, ", "); r.InSync || got != "NoNodeLeft bare, NodesLeftOut some, RestrictionHasNoEffect web" {
		t.Errorf("in sync %t: %s", r.InSync, got)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.HasPrefix(text.String(), "Something is wrong with 2 of 2 BackendPools and 1 of 1 Service. weir-0 leads. It is 2026-") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// Text output, with control characters removed.
func TestReportText(t *testing.T) {
	seen := Snapshot{At: noon, Leader: leads, Services: []corev1.Service{newService("web", []string{metadata.ServiceFinalizer})}}
	seen.Pools = append(seen.Pools, paused("db", nil), paused("cache", until(2*time.Hour)), paused("queue", until(time.Hour)), failed("api", "AuthorizationFailed\x1b[31m", time.Hour), pool("ok", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour))
	for i := range 12 {
		seen.Pools = append(seen.Pools, failed(fmt.Sprintf("web-%02d", i), "AuthorizationFailed", time.Duration(20-i)*time.Minute))
	}
	seen.Pools = append(seen.Pools,
		pool("far", v1alpha1.ReasonPending, "adding 1 node; waits for the lease kube-system/aks-managed-resource-locker, which is held by \"other\"", 3*time.Minute),
		pool("near", v1alpha1.ReasonUpdating, "adding 1 node\x1b[2J", time.Second))
	seen.Services = append(seen.Services,
		newService("new", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonUpdating, Message: "made", LastTransitionTime: ago(time.Minute)}),
		newService("open", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: servicelb.TypeAccepted, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonOpen, Message: "restrictions without effect", LastTransitionTime: ago(time.Minute)}))
	var out bytes.Buffer
	if err := NewReport(seen).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "status.txt")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || out.String() != string(want) {
		t.Errorf("%v; got\n%swant\n%s", err, out.String(), want)
	}
}

// The summary distinguishes a Lease without a holder from a missing one; the suggested fix is something a
// user can do.
func TestTheVerdict(t *testing.T) {
	throttled := []v1alpha1.BackendPool{failed("a", "TooManyRequests", time.Hour), failed("b", "TooManyRequests", time.Hour)}
	for _, tt := range []struct {
		seen            Snapshot
		wantText, mends string
	}{
		{Snapshot{Leader: leads}, "In sync: 0 BackendPools, 0 Services. weir-0 leads.", ""},
		{Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{pool("a", v1alpha1.ReasonUpdating, "adding 1", time.Minute)}}, "Nothing is wrong: 1 BackendPool, 0 Services. In progress: 1 BackendPool. weir-0 leads.", ""},
		{Snapshot{Leader: leads, Pools: []v1alpha1.BackendPool{paused("a", nil)}}, "Nothing is wrong: 1 BackendPool, 0 Services. Paused: 1. weir-0 leads.", ""},
		{Snapshot{}, "In sync: 0 BackendPools, 0 Services. The leader is unknown: you may not list Leases.", ""},
		{Snapshot{Leader: Leader{Known: true, Namespace: "weir-system"}}, "Something is wrong. No process of Weir leads.", ""},
		{Snapshot{Leader: Leader{Known: true}}, "In sync: 0 BackendPools, 0 Services. It is unknown whether Weir runs: there is no Lease weir-controller. Weir is not installed, or runs with --leader-elect=false.", ""},
		{Snapshot{Leader: leads, Pools: throttled}, "Something is wrong with 2 of 2 BackendPools. weir-0 leads.", ""},
		{Snapshot{Leader: leads, Pools: append(throttled, failed("c", "ScopeLocked", time.Minute))}, "Something is wrong with 3 of 3 BackendPools. weir-0 leads.", remedies["ScopeLocked"]},
		{Snapshot{Leader: Leader{Known: true, Namespace: "weir-system"}, Pools: throttled}, "Something is wrong with 2 of 2 BackendPools. No process of Weir leads.", remedies[NoLeader]},
	} {
		tt.seen.At = noon
		r := NewReport(tt.seen)
		if c, _ := r.MainCause(); r.Summary() != tt.wantText || c.Fix != tt.mends {
			t.Errorf("%q; fix %q\nwant %q; %q", r.Summary(), c.Fix, tt.wantText, tt.mends)
		}
	}
}

// Each state that needs action and has no Azure error code has a remedy, or a message that explains it.
func TestRemedies(t *testing.T) {
	output := map[string]bool{
		v1alpha1.ReasonInSync: true, v1alpha1.ReasonPending: true, v1alpha1.ReasonUpdating: true, v1alpha1.ReasonPace: true, v1alpha1.ReasonDeferred: true, v1alpha1.ReasonLeaving: true, // in progress
		v1alpha1.ReasonRetrying: true, v1alpha1.ReasonFailed: true, // remedy by Azure's code
		v1alpha1.ReasonNICPool: true, v1alpha1.ReasonAddressPool: true, v1alpha1.ReasonOverlappingNodes: true, // explained by the message
	}
	for _, reason := range v1alpha1.SyncedReasons {
		if output[reason] == (remedies[reason] != "") {
			t.Errorf("%s: said otherwise %t, and remedy %q", reason, output[reason], remedies[reason])
		}
	}
}

// Watch prints on changes, not as time passes.
func TestWatchPrintsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		p := failed("web", "TooManyRequests", 0)
		p.Status.LastOutcome.Since = metav1.NewTime(time.Now().Add(-time.Hour))
		api := server(t, &p)
		go func() {
			time.Sleep(30 * time.Second)
			if err := api.Delete(ctx, &p); err != nil {
				t.Error(err)
			}
		}()
		var out bytes.Buffer
		if err := (Command{API: api, Out: &out, JSON: true}).WatchReport(ctx); err != nil {
			t.Fatal(err)
		}
		var synced []bool
		for lines := json.NewDecoder(&out); ; {
			var r Report
			if lines.Decode(&r) != nil {
				break
			}
			synced = append(synced, r.InSync)
		}
		if fmt.Sprint(synced) != "[false true]" { // throttled; then resolved
			t.Error(synced)
		}
	})
}

// Waiting Provisions without a provisioner are a problem; without its Lease they are a note, because it may
// run without one. Without Provisions there is neither.
func TestNoProvisioner(t *testing.T) {
	lapsed := Leader{Known: true, Namespace: "weir-system", Last: "p-0", Renewed: noon.Add(-time.Hour)}
	for name, tt := range map[string]struct {
		p           Provisioner
		inSync      bool
		wrong, note string
	}{
		"it leads":           {Provisioner{Leader: leads, Waiting: 2}, true, "", ""},
		"none leads":         {Provisioner{Leader: lapsed, Waiting: 2}, false, "2 Provisions in progress; no process of weir-provisioner has led since 2026-03-01T11:00:00Z; before, p-0 did", ""},
		"none is needed":     {Provisioner{Leader: lapsed}, true, "", ""},
		"no Lease":           {Provisioner{Leader: Leader{Known: true}, Waiting: 1}, true, "", "1 Provision in progress; there is no Lease weir-provisioner"},
		"Leases are not for": {Provisioner{Waiting: 1}, true, "", ""},
	} {
		r := NewReport(Snapshot{At: noon, Leader: leads, Provisioner: tt.p})
		first := func(of []Cause) string {
			if len(of) == 0 {
				return ""
			}
			if of[0].Name != NoProvisioner || of[0].Fix == "" {
				t.Errorf("%s: %+v", name, of[0])
			}
			return of[0].Objects[0].Why
		}
		wrong, note := first(r.Causes), first(r.Notes)
		if r.InSync != tt.inSync || !strings.HasPrefix(wrong, tt.wrong) || (wrong == "") != (tt.wrong == "") || !strings.HasPrefix(note, tt.note) || (note == "") != (tt.note == "") {
			t.Errorf("%s: %t, %q, %q", name, r.InSync, wrong, note)
		}
	}
}

// The provisioner's leader is read from its own Lease; finished Provisions do not count as waiting.
func TestReadProvisioner(t *testing.T) {
	provision := func(name, state string) *v1alpha1.Provision {
		return &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: v1alpha1.ProvisionStatus{State: state}}
	}
	lease := func(name, holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(noon)),
		}}
	}
	api := server(t, provision("new", ""), provision("runs", "Running"), provision("waits", "Waiting"), provision("a", "Succeeded"), provision("b", "Failed"), provision("c", "Cancelled"),
		lease(LeaseName, "weir-0"), lease("weir-provisioner", "p-0"))
	if p, err := ReadProvisioner(t.Context(), api, "", noon); err != nil || p.Waiting != 3 || p.Holder != "p-0" || p.MissingReason() != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ReadProvisioner(t.Context(), api, "other", noon.Add(time.Minute)); err != nil || p.Waiting != 0 || p.Holder != "" || p.MissingReason() == "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// Without permission to list Leases the rest is shown; other errors are returned.
func TestForbiddenReads(t *testing.T) {
	for _, tt := range []struct {
		name, list string
		err        error
		want       string
	}{
		{"who leads is left open", "lease", apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil), ""},
		{"no answer", "lease", errors.New("no answer"), "reading Leases: no answer"},
		{"no rights", "pool", errors.New("forbidden"), "reading BackendPools: forbidden"},
		{"not installed", "pool", &meta.NoKindMatchError{}, "the API server does not serve BackendPools: Weir is not installed in this cluster, or only in part; weir doctor has the fix"},
	} {
		api := interceptor.NewClient(server(t), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				_, leases := list.(*coordinationv1.LeaseList)
				_, pools := list.(*v1alpha1.BackendPoolList)
				if leases && tt.list == "lease" || pools && tt.list == "pool" {
					return tt.err
				}
				return c.List(ctx, list, opts...)
			},
		})
		seen, err := ReadSnapshot(t.Context(), api, "", noon)
		if got := fmt.Sprint(err); err != nil && got != tt.want || err == nil && (tt.want != "" || seen.Leader.Known) {
			t.Errorf("%s: %v, %+v; want %q", tt.name, err, seen.Leader, tt.want)
		}
	}
}

// Colors are added to the text, and nothing else differs.
func TestColors(t *testing.T) {
	wrong := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{failed("api", "AuthorizationFailed", time.Hour)}})
	inSync := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{pool("ok", v1alpha1.ReasonInSync, "in sync with 1 node", time.Hour)}})
	for _, c := range []struct {
		report Report
		want   []string
	}{
		{wrong, []string{"\x1b[31mSomething is wrong with 1 of 1 BackendPool", "\x1b[31mAuthorizationFailed:\x1b[0m ", "  \x1b[1mWhat to do:\x1b[0m "}},
		{inSync, []string{"\x1b[32mIn sync: 1 BackendPool, 0 Services. weir-0 leads.\x1b[0m\n"}},
	} {
		var plain, colored bytes.Buffer
		if err := errors.Join(c.report.WriteText(&plain), c.report.WriteColored(&colored)); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(colored.String(), want) {
				t.Errorf("no %q in %q", want, colored.String())
			}
		}
		if got := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(colored.String(), ""); got != plain.String() {
			t.Errorf("without colors it is\n%s\nwant\n%s", got, plain.String())
		}
	}
}

// A problem of a pool that Services share names the load balancer.
func TestASharedPoolIsThatOfAllServices(t *testing.T) {
	shared := failed("nodes.kubernetes", "Conflict", time.Minute)
	shared.Spec = v1alpha1.BackendPoolSpec{LoadBalancer: v1alpha1.LoadBalancerReference{Name: "kubernetes"}, Nodes: &v1alpha1.NodeMembers{}}
	shared.Status.MadeFor = v1alpha1.MadeForNodes
	var out strings.Builder
	if err := NewReport(Snapshot{At: noon, Leader: Leader{Known: true, Holder: "weir-0"}, Pools: []v1alpha1.BackendPool{shared}}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if want := "for 60s   all Services of load balancer kubernetes\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}
