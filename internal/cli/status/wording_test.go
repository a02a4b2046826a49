// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

func notProgrammed(reason, message string, age time.Duration) corev1.Service {
	return newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{
		Type: servicelb.TypeProgrammed, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: ago(age),
	})
}

// A Service that waits for its share of writes is in progress; one that Azure rejected is a problem at once, though its next
// try waits.
func TestDeferredServices(t *testing.T) {
	for _, tt := range []struct {
		message      string
		age          time.Duration
		wrong, waits int
	}{
		{"namespace shop may send no write before 2026-03-01T12:01:00Z", time.Minute, 0, 1},
		{"namespace shop may send no write before 2026-03-01T12:01:00Z", maxPendingAge, 1, 0},
		{loadbalancer.RejectedPrefix + "it, and another try follows", time.Second, 1, 0},
	} {
		r := NewReport(Snapshot{At: noon, Leader: leads, Services: []corev1.Service{notProgrammed(servicelb.ConditionReasonDeferred, tt.message, tt.age)}})
		if r.Services.Wrong != tt.wrong || len(r.Waiting) != tt.waits {
			t.Errorf("%q after %s: %d wrong, %d waiting", tt.message, tt.age, r.Services.Wrong, len(r.Waiting))
		}
	}
}

// A deleted Service is listed until Azure has nothing of it: in progress at first, with the cause and the fix once its
// removal fails or takes long.
func TestDeletedServices(t *testing.T) {
	programmed := metav1.Condition{Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonProgrammed}
	const denied = "failed to delete load balancer: 403 AuthorizationFailed: no"
	const inUse = "failed to delete load balancer: 400 InUseNetworkSecurityGroup: it is in use"
	for about, tt := range map[string]struct {
		service           corev1.Service
		age               time.Duration
		wrong, waits, fix string
	}{
		"deleted":               {newService("web", []string{metadata.ServiceFinalizer}, programmed), time.Minute, "", "Leaving", ""},
		"for too long":          {newService("web", []string{metadata.ServiceFinalizer}, programmed), maxPendingAge, "Leaving", "", "weir doctor"},
		"not allowed":           {notProgrammed(servicelb.ConditionReasonFailed, denied, time.Second), time.Second, "AuthorizationFailed", "", "role"},
		"rejected by Azure":     {notProgrammed(servicelb.ConditionReasonFailed, inUse, time.Second), time.Second, "Failed", "", "weir retry -n shop service/web"},
		"throttled":             {notProgrammed(servicelb.ConditionReasonRetryAfter, "Weir waits for Azure", time.Second), time.Second, "", "RetryAfter", ""},
		"addresses would go":    {notProgrammed(servicelb.ConditionReasonRemovalBlocked, "10.0.0.1", time.Second), time.Second, "RemovalHeld", "", "kubectl annotate service -n shop web"},
		"not in Azure any more": {newService("web", []string{"example.com/backup"}, programmed), time.Hour, "", "", ""},
	} {
		tt.service.DeletionTimestamp = new(ago(tt.age))
		r := NewReport(Snapshot{At: noon, Leader: leads, Services: []corev1.Service{tt.service}})
		wrong, waits, fix := "", "", ""
		if len(r.Causes) > 0 {
			wrong, fix = r.Causes[0].Name, r.Causes[0].Fix
		}
		if len(r.Waiting) > 0 {
			waits = r.Waiting[0].State
		}
		if wrong != tt.wrong || waits != tt.waits || !strings.Contains(fix, tt.fix) || r.Services.All != 1 {
			t.Errorf("%s: wrong %q, waits %q, fix %q of %d", about, wrong, waits, fix, r.Services.All)
		}
	}
}

// A pool with a failed last write is a problem while a later change waits, since the failure.
func TestAFailedWriteIsNotHidden(t *testing.T) {
	p := pool("web", v1alpha1.ReasonPace, "a change waits", time.Hour)
	p.Status.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Terminal", Code: "AuthorizationFailed", Since: ago(time.Minute)}
	r := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{p}})
	if len(r.Causes) != 1 || r.Causes[0].Name != "AuthorizationFailed" || len(r.Waiting) > 0 {
		t.Fatalf("%+v", r)
	}
	if got := r.Causes[0].Objects[0]; got.State != v1alpha1.ReasonFailed || !got.Since.Equal(noon.Add(-time.Minute)) || got.Why != "the last attempt failed: AuthorizationFailed; now: a change waits" {
		t.Errorf("%+v", got)
	}
	p.Status.LastOutcome.Code = ""
	if r = NewReport(Snapshot{At: noon.Add(-55 * time.Minute), Leader: leads, Pools: []v1alpha1.BackendPool{p}}); len(r.Causes) > 0 || len(r.Waiting) != 1 {
		t.Errorf("in sync before: %+v", r)
	}
}

// What a user can fix is printed first, whatever has more objects; the line that names it agrees with the order.
func TestTheFirstCauseHasAFix(t *testing.T) {
	r := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{
		failed("a", "TooManyRequests", time.Hour), failed("b", "TooManyRequests", time.Hour), failed("c", "ScopeLocked", time.Minute),
	}})
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	first, after := strings.Index(text.String(), "\nScopeLocked:"), strings.Index(text.String(), "\nTooManyRequests:")
	if !strings.Contains(text.String(), "Fix first: ScopeLocked (1 of 3).") || first < 0 || first > after {
		t.Error(text.String())
	}
}

// Where the fix is in the message, each object has its own. One message for all is printed once.
func TestEachMessageWithAFixIsPrinted(t *testing.T) {
	provision := func(name, reason string) v1alpha1.Provision {
		p := v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.Status.State = v1alpha1.ProvisionFailed
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ProvisionConditionFailed, Status: "True", Message: reason, LastTransitionTime: ago(time.Hour)}}
		return p
	}
	for about, tt := range map[string]struct {
		failed []v1alpha1.Provision
		want   []string
	}{
		"they differ":   {[]v1alpha1.Provision{provision("a", "no such host"), provision("b", "401 Unauthorized")}, []string{"ProvisionFailed:\n", "shop/a   Failed   for 60m      no such host\n", "shop/b   Failed   for 60m      401 Unauthorized\n"}},
		"they are same": {[]v1alpha1.Provision{provision("a", "no such host"), provision("b", "no such host")}, []string{"ProvisionFailed: no such host\n", "shop/a   Failed   for 60m\n"}},
	} {
		var text strings.Builder
		if err := NewReport(Snapshot{At: noon, Leader: leads, Provisioner: Provisioner{All: 2, Failed: tt.failed}}).WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: no %q in %s", about, want, text.String())
			}
		}
	}
}

// The time of a condition is that of its status. Where the reason may be newer, the text has an upper bound.
func TestAgesOfReasons(t *testing.T) {
	out := pool("gone", v1alpha1.ReasonPoolNotFound, "no pool", time.Hour)
	remaining := pool("left", v1alpha1.ReasonInSync, "in sync with 2 nodes; left out: n3 has no address", time.Hour)
	r := NewReport(Snapshot{
		At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{out, remaining, failed("web", "ScopeLocked", time.Minute)},
		Services: []corev1.Service{notProgrammed(servicelb.ConditionReasonFailed, "no", time.Hour)},
	})
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"backendpool shop/gone   PoolNotFound   for up to 60m", "backendpool shop/left   NodesLeftOut   for up to 60m",
		"backendpool shop/web   Retrying   for 60s", "service shop/web   Failed   for up to 60m",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
}

// A pool of a user that is in sync and empty is noted, and not a problem; that of a Service of Weir has its Service's condition.
func TestEmptyPoolsAreNoted(t *testing.T) {
	empty := func(madeFor string, of *v1alpha1.ServiceReference) v1alpha1.BackendPool {
		p := pool("web", v1alpha1.ReasonInSync, "in sync with no nodes", time.Hour)
		p.Spec.ServiceRef, p.Status.MadeFor = of, madeFor
		return p
	}
	for _, tt := range []struct {
		p         v1alpha1.BackendPool
		note, fix string
	}{
		{empty("", &v1alpha1.ServiceReference{Name: "web"}), servicelb.ConditionReasonNoEndpoints, "kubernetes.io/service-name=web "},
		{empty("", nil), NoNodes, "change the selector"},
		{empty(v1alpha1.MadeForNodes, nil), "", ""},
		{empty("web", &v1alpha1.ServiceReference{Name: "web"}), "", ""},
	} {
		r := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{tt.p}})
		if !r.InSync || len(r.Notes) > 1 || (len(r.Notes) > 0) != (tt.note != "") {
			t.Fatalf("%+v", r)
		}
		if len(r.Notes) > 0 && (r.Notes[0].Name != tt.note || !strings.Contains(r.Notes[0].Fix, tt.fix)) {
			t.Errorf("%+v", r.Notes[0])
		}
	}
}

// An empty pool with a problem has no note: the fix of the problem comes first.
func TestAnEmptyPoolWithAProblemIsNotNoted(t *testing.T) {
	p := pool("web", v1alpha1.ReasonInSync, "in sync with no nodes; left out: n3 has no InternalIP", time.Hour)
	if r := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{p}}); len(r.Notes) > 0 || len(r.Causes) != 1 || r.Causes[0].Name != NoNodeLeft {
		t.Errorf("causes %+v, notes %+v", r.Causes, r.Notes)
	}
}

// A write that Azure rejects with any code has a fix, and comes before what does not stop traffic.
func TestRejectionsWithoutTheirOwnFix(t *testing.T) {
	p := pool("web", v1alpha1.ReasonFailed, "the last attempt failed: write pool lb/web: 400 UnknownResourceReference: no such network", time.Hour)
	p.Status.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Terminal", Code: "UnknownResourceReference", Since: ago(time.Minute)}
	s := newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{
		Type: servicelb.TypeProgrammed, Status: metav1.ConditionTrue, Reason: servicelb.ConditionReasonNotEnforced, LastTransitionTime: ago(time.Hour),
	})
	r := NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{p}, Services: []corev1.Service{s}})
	if do := RemedyOf("Conflict9", Problem{Why: "the last attempt failed: write pool lb/web: 409 Conflict9: busy"}); do != "" {
		t.Errorf("a code without a fix that is no rejection: %q", do)
	}
	if len(r.Causes) != 2 || r.Causes[0].Name != "UnknownResourceReference" || !strings.HasSuffix(r.Causes[0].Fix, "weir retry -n shop backendpool/web") {
		t.Errorf("%+v", r.Causes)
	}
}

func TestKindsOfProblemsAreListed(t *testing.T) {
	wrong := Count{All: 2, Wrong: 1}
	for want, r := range map[string]Report{
		" with 1 of 2 BackendPools":                                                   {Pools: wrong},
		" with 1 of 2 BackendPools and 1 of 2 Services":                               {Pools: wrong, Services: wrong},
		" with 1 of 2 BackendPools, 1 of 2 Services and 1 of 2 Gateways":              {Pools: wrong, Services: wrong, Gateways: wrong},
		" with 1 of 2 Services, 1 of 2 Gateways and 1 of 2 Provisions in namespace a": {Services: wrong, Gateways: wrong, Provisions: wrong, Namespace: "a"},
		"": {},
	} {
		if got := r.problemText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
