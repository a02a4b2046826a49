// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
)

// waits is a Service of type LoadBalancer without an address.
func waits(class *string, age time.Duration, edit func(*corev1.Service)) corev1.Service {
	s := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: ago(age)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: class},
	}
	if edit != nil {
		edit(&s)
	}
	return s
}

func controllerWith(replicas int32, flags ...string) Installation {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: append([]string{"controller"}, flags...)}}
	return Installation{Known: true, Deployment: d}
}

// A Service that no controller has begun to serve within 30 s is a problem; one that another controller or a BackendPool
// serves is not.
func TestServicesThatWait(t *testing.T) {
	weirs, others, servesClassless := new("weir.dev/azure"), new("weir.dev/azur"), leads
	servesClassless.Class = new("")
	for _, tt := range []struct {
		about  string
		svc    corev1.Service
		leader Leader
		pools  []v1alpha1.BackendPool
		cause  string
	}{
		{"Weir's class", waits(weirs, time.Minute, nil), leads, nil, "NotServed[web]"},
		{"Weir's class, just created", waits(weirs, 29*time.Second, nil), leads, nil, ""},
		{"a class of no controller", waits(others, 30*time.Second, nil), leads, nil, "NoController[web]"},
		{"no class", waits(nil, time.Minute, nil), leads, nil, "NoController[web]"},
		{"no class, which this Weir serves", waits(nil, time.Minute, nil), servesClassless, nil, "NotServed[web]"},
		{"a class that this Weir does not serve", waits(weirs, time.Minute, nil), servesClassless, nil, "NoController[web]"},
		{"another service controller has begun", waits(nil, time.Minute, func(s *corev1.Service) { s.Finalizers = []string{metadata.CleanupFinalizer} }), leads, nil, ""},
		{"it has an address", waits(others, time.Minute, func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		}), leads, nil, ""},
		{"it has a condition of Weir", waits(weirs, time.Minute, func(s *corev1.Service) {
			s.Status.Conditions = []metav1.Condition{{Type: cache.ConditionAccepted, Status: "True"}}
		}), leads, nil, ""},
		{"Weir has begun and ended", waits(weirs, time.Minute, func(s *corev1.Service) { s.Finalizers = []string{metadata.ServiceFinalizer} }), leads, nil, "NotServed[web]"},
		{"Weir has begun, ten minutes ago", waits(weirs, 10*time.Minute, func(s *corev1.Service) {
			s.Finalizers = []string{metadata.ServiceFinalizer}
			s.Status.Conditions = []metav1.Condition{{Type: cache.ConditionAccepted, Status: "True"}}
		}), leads, nil, "NoAddress[web]"},
		{"it is being deleted", waits(others, time.Minute, func(s *corev1.Service) { s.DeletionTimestamp = new(ago(0)) }), leads, nil, ""},
		{"it is of another type", waits(nil, time.Minute, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }), leads, nil, ""},
		{"its load balancer is made by others", waits(nil, time.Minute, nil), leads, []v1alpha1.BackendPool{pool("web", v1alpha1.ReasonInSync, "in sync with 2 nodes", time.Hour)}, ""},
	} {
		r := NewReport(Snapshot{At: noon, Leader: tt.leader, Services: []corev1.Service{tt.svc}, Pools: tt.pools})
		if got := causeNames(r); got != tt.cause || r.InSync != (tt.cause == "") {
			t.Errorf("%s: %q, want %q", tt.about, got, tt.cause)
		}
	}
}

func causeNames(r Report) string {
	var values []string
	for _, c := range r.Causes {
		names := make([]string, 0, len(c.Objects))
		for _, o := range c.Objects {
			names = append(names, o.Name)
		}
		values = append(values, c.Name+"["+strings.Join(names, " ")+"]")
	}
	return strings.Join(values, " ")
}

// The class is that of the leader, else that of the Deployment, else the default.
func TestTheServedClass(t *testing.T) {
	old := Leader{Known: true, Class: new("old.example/class")}
	for _, tt := range []struct {
		about    string
		l        Leader
		i        Installation
		want     string
		wantText string
	}{
		{"nothing is known", Leader{}, Installation{}, "weir.dev/azure", "Which class Weir serves is not seen with your rights"},
		{"nothing is there", Leader{Known: true}, Installation{Known: true}, "weir.dev/azure", "No Weir is seen in this cluster"},
		{"an older leader", leads, Installation{Known: true}, "weir.dev/azure", "Which class Weir serves is not seen"},
		{"a Deployment", Leader{}, controllerWith(2, "--load-balancer-class=a.example/b"), "a.example/b", "This Weir serves "},
		{"a Deployment with the value apart", Leader{}, controllerWith(2, "--load-balancer-class", ""), "", "This Weir serves "},
		{"a leader", Leader{Known: true, Holder: "weir-0", Class: new("c.example/d")}, controllerWith(2, "--load-balancer-class=a.example/b"), "c.example/d", "This Weir serves "},
		{"one that led outside of the cluster", old, Installation{Known: true}, "old.example/class", "This Weir serves "},
		{"one that led before the Deployment", old, controllerWith(2), "weir.dev/azure", "This Weir serves "},
	} {
		got, known := ServedClass(tt.l, tt.i)
		if got != tt.want || known != (tt.wantText == "This Weir serves ") {
			t.Errorf("%s: %q, %t, want %q", tt.about, got, known, tt.want)
		}
		if text := ServedText(tt.l, tt.i); !strings.HasPrefix(text, tt.wantText) {
			t.Errorf("%s: %q", tt.about, text)
		}
	}
}

// What keeps Weir from running is a problem of its own, also if no Lease was ever written.
func TestWeirDoesNotRun(t *testing.T) {
	rival := leads
	rival.Rivals = []Leader{{Known: true, Holder: "other-0", Namespace: "kube-system"}}
	unknown := Leader{}
	for _, tt := range []struct {
		about  string
		l      Leader
		i      Installation
		cause  string
		reason string
	}{
		{"it leads", leads, controllerWith(0), "", ""},
		{"no replicas, and no Lease", Leader{Known: true}, controllerWith(0), "NoLeader[weir-controller]", "Deployment weir-system/weir-controller has 0 replicas"},
		{"no replicas, and a Lease", Leader{Known: true, Namespace: "weir-system", Last: "weir-0"}, controllerWith(0), "NoLeader[weir-controller]", "has 0 replicas"},
		{"no replicas, and Leases are not seen", unknown, controllerWith(0), "NoLeader[weir-controller]", "has 0 replicas"},
		{"without leader election", Leader{Known: true}, controllerWith(0, "--leader-elect=false"), "", ""},
		{"neither is seen", unknown, Installation{}, "", ""},
		{"two lead", rival, controllerWith(2), "TwoLeaders[weir-controller]", "weir-0 leads by Lease weir-system/weir-controller, and other-0 by Lease kube-system/weir-controller"},
	} {
		r := NewReport(Snapshot{At: noon, Leader: tt.l, Installation: tt.i})
		if got := causeNames(r); got != tt.cause || len(r.Causes) > 0 && !strings.Contains(r.Causes[0].Objects[0].Why, tt.reason) {
			t.Errorf("%s: %q, %+v", tt.about, got, r.Causes)
		}
	}
}

// A failed Provision is a problem with its cause; others are not.
func TestFailedProvisions(t *testing.T) {
	failed := v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}}
	failed.Status.State = v1alpha1.ProvisionFailed
	failed.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ProvisionConditionFailed, Status: "True", Message: "step 2: no such host", LastTransitionTime: ago(time.Hour)}}
	done := failed
	done.Name, done.Status.State = "ok", v1alpha1.ProvisionSucceeded
	p, err := ReadProvisioner(t.Context(), server(t, &failed, &done), "shop", noon)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(Snapshot{At: noon, Leader: leads, Provisioner: p, Namespace: "shop"})
	if causeNames(r) != "ProvisionFailed[edge]" || r.Causes[0].Objects[0].Why != "step 2: no such host" || !strings.Contains(r.Causes[0].Fix, "weir provision retry-now -n shop edge") ||
		!strings.HasPrefix(r.Summary(), "Something is wrong with 1 of 2 Provisions in namespace shop.") {
		t.Errorf("%s %+v", r.Summary(), r.Causes)
	}
}

// A Provision that no attempt can begin is a problem: its cause is the condition Accepted, also without a state.
func TestRejectedProvisions(t *testing.T) {
	rejected := v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}}
	rejected.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ProvisionAccepted, Status: "False", Message: `there is no Partner "retail"`, LastTransitionTime: ago(time.Hour)}}
	p, err := ReadProvisioner(t.Context(), server(t, &rejected), "shop", noon)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(Snapshot{At: noon, Leader: leads, Provisioner: p, Namespace: "shop"})
	if causeNames(r) != "ProvisionNotAccepted[edge]" || !strings.Contains(r.Causes[0].Objects[0].Why, "no Partner") || r.Causes[0].Objects[0].State != "Pending" || r.Provisions.Wrong != 1 {
		t.Errorf("%s %+v", r.Summary(), r.Causes)
	}
}

// A namespace that does not exist is an error.
func TestAnUnknownNamespace(t *testing.T) {
	api := server(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	if err := CheckNamespace(t.Context(), api, "shpo"); err == nil || !strings.Contains(err.Error(), `there is no namespace "shpo"`) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"shop", ""} {
		if err := CheckNamespace(t.Context(), api, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The cause of a failed write is Azure's code in its message, where the condition has none of its own.
func TestCausesInMessages(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{"list load balancers of resource group rg: 403 AuthorizationFailed: The client 'x' does not have authorization", "AuthorizationFailed"},
		{"ClientSecretCredential authentication failed: AADSTS7000215: Invalid client secret provided", "AuthenticationFailed"},
		{"get a token: AADSTS700016: Application 'c' was not found", "AuthenticationFailed"},
		{"ManagedIdentityCredential authentication failed: Identity not found", "AuthenticationFailed"},
		{"write load balancer kubernetes: 400 SomethingNew: no", "Failed"},
		{"forbidden", "Failed"},
	} {
		s := newService("web", []string{metadata.ServiceFinalizer}, metav1.Condition{Type: cache.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: "Failed", Message: tt.message})
		if got := causeNames(NewReport(Snapshot{At: noon, Leader: leads, Services: []corev1.Service{s}})); got != tt.want+"[web]" {
			t.Errorf("%s: %s, want %s", tt.message, got, tt.want)
		}
		p := failed("web", "Unclassified", time.Minute)
		p.Status.Conditions[0].Message = tt.message
		want := strings.Replace(tt.want, "Failed", "Unclassified", 1)
		if strings.HasPrefix(tt.want, "Auth") {
			want = tt.want
		}
		if got := causeNames(NewReport(Snapshot{At: noon, Leader: leads, Pools: []v1alpha1.BackendPool{p}})); got != want+"[web]" {
			t.Errorf("%s: %s, want %s", tt.message, got, want)
		}
	}
}
