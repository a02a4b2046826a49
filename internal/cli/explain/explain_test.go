// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// cluster has a Service on four nodes: one is missing from the pool, one Down, one leaving, one left out. A
// pool of another namespace has a node, too.
func cluster() []client.Object {
	objects := []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "6b7d", Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"}, Finalizers: []string{metadata.ServiceFinalizer},
			},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("weir.dev/azure"), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080}, {Protocol: corev1.ProtocolUDP, Port: 443, NodePort: 30443}},
			},
			Status: corev1.ServiceStatus{
				LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}},
				Conditions:   []metav1.Condition{{Type: metadata.ConditionConflict, Status: metav1.ConditionTrue, Reason: "LoadBalancerContested", Message: "somebody\x1b[2J else", LastTransitionTime: ago(time.Minute)}},
			},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", CreationTimestamp: ago(time.Minute)},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30444}}},
		},
		pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}}, "10.0.0.1", "10.0.0.2", "10.0.0.9"),
		pool("weir-system", "nodes.kubernetes", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}}, "10.0.0.1", "10.0.0.2"),
		pool("shop", "other", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "other"}}),
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e1"}, InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "web"},
			LastTimestamp: ago(time.Minute), Count: 3, Type: "Warning", Reason: "LoadBalancerBackendPoolUpdateRetrying", Message: "429",
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e0"}, InvolvedObject: corev1.ObjectReference{Kind: "BackendPool", Namespace: "shop", Name: "web.kubernetes"},
			EventTime: metav1.NewMicroTime(noon.Add(-time.Hour)), Type: "Warning", Reason: "PoolNotFound", Message: "there is none",
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e2"}, InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "other"}, Reason: "NotOurs",
		},
	}
	holder, term := "weir-0", int32(15)
	objects = append(objects, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: status.LeaseName, Annotations: map[string]string{k8s.ClassAnnotation: "weir.dev/azure"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &term, RenewTime: new(metav1.NewMicroTime(noon))},
	})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", ""} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}}
		if address != "" {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, NodeName: &n.Name})
		objects = append(objects, n)
	}
	return append(objects, slice)
}

func pool(namespace, name string, spec v1alpha1.BackendPoolSpec, written ...string) *v1alpha1.BackendPool {
	wanted, shown, used, budget := int32(3), int32(4), int32(1), int32(3)
	spec.LoadBalancer.Name, spec.PoolName, spec.IPFamily = "kubernetes", name, "IPv4"
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec, Status: v1alpha1.BackendPoolStatus{
		Desired: &wanted, Observed: &shown, RetriesUsed: &used, RetryBudget: &budget, WrittenAddresses: written,
		LastOutcome: &v1alpha1.AttemptOutcome{Class: "Retriable", Code: "TooManyRequests", Since: ago(time.Minute)},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionSynced, Reason: v1alpha1.ReasonRetrying, Message: "the last attempt failed: 429", LastTransitionTime: ago(time.Minute)},
			{Type: v1alpha1.ConditionParked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetryAfter, Message: "Azure accepts no request before 12:05:00"},
		},
	}}
	if len(written) > 0 {
		p.Status.Down = []v1alpha1.DownAddress{{Address: "10.0.0.2", Node: "n2", Reason: "it drains", Since: ago(time.Minute)}}
	}
	if spec.Nodes != nil {
		p.Status.MadeFor = v1alpha1.MadeForNodes
	}
	return p
}

func scheme() *runtime.Scheme {
	s := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(s), appsv1.AddToScheme(s)); err != nil {
		panic(err)
	}
	return s
}

func server() client.WithWatch { return serverWith(cluster()...) }

func serverWith(objects ...client.Object) client.WithWatch {
	b := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...)
	return b.WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).Build()
}

// Text output for a Service, its pool and one of its nodes.
func TestStories(t *testing.T) {
	r := Reader{API: server(), Now: noon}
	for name, tell := range map[string]func() (Explanation, error){
		"service": func() (Explanation, error) { return r.ExplainService(t.Context(), "shop", "web") },
		"waits":   func() (Explanation, error) { return r.ExplainService(t.Context(), "shop", "api") },
		"pool":    func() (Explanation, error) { return r.ExplainPool(t.Context(), "shop", "web.kubernetes") },
		"nodes":   func() (Explanation, error) { return r.ExplainPool(t.Context(), "weir-system", "nodes.kubernetes") },
		"node":    func() (Explanation, error) { return r.ExplainNode(t.Context(), "n2") },
		"alone":   func() (Explanation, error) { return r.ExplainPool(t.Context(), "shop", "other") },
	} {
		explanation, err := tell()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out bytes.Buffer
		if err := explanation.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".txt")
		if os.Getenv("REWRITE") != "" {
			if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || out.String() != string(want) {
			t.Errorf("%s: %v; got\n%swant\n%s", name, err, out.String(), want)
		}
	}
}

// Colors are added to the text, and nothing else differs.
func TestColors(t *testing.T) {
	r := Reader{API: server(), Now: noon}
	explanation, err := r.ExplainService(t.Context(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	var plain, colored bytes.Buffer
	if err := errors.Join(explanation.WriteText(&plain), explanation.WriteColored(&colored)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x1b[1mService shop/web\x1b[0m: ", "\x1b[1mBackendPool shop/web.kubernetes\x1b[0m: \x1b[33m", "\x1b[1mWhat to do\x1b[0m: ", "\x1b[31mMissing\x1b[0m", "\x1b[32mInPool\x1b[0m"} {
		if !strings.Contains(colored.String(), want) {
			t.Errorf("no %q in %s", want, colored.String())
		}
	}
	if got := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(colored.String(), ""); got != plain.String() {
		t.Errorf("without colors it is\n%s\nwant\n%s", got, plain.String())
	}
}

// A node of another load balancer is not missing, except in a pool that users created.
func TestANodeOfAnotherLoadBalancer(t *testing.T) {
	p := pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}})
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{metadata.PlaceLabel: "lb2"}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	for balancer, got := range map[string]string{"kubernetes": LeftOut, "kubernetes-internal": LeftOut, "lb2": Missing, "LB2-internal": Missing} {
		p.Spec.LoadBalancer.Name = balancer
		if m := memberStates(p, nil, []corev1.Node{n}, noon); len(m) != 1 || m[0].State != got {
			t.Errorf("%s: %+v, want %s", balancer, m, got)
		}
	}
	p.Status.MadeFor, p.Spec.LoadBalancer.Name = "", "kubernetes"
	if m := memberStates(p, nil, []corev1.Node{n}, noon); m[0].State != Missing {
		t.Errorf("a pool of people: %+v", m)
	}
}

// A user with access to one namespace sees its pools; without permission to list Nodes, only recorded
// members.
func TestReaderOfOneNamespace(t *testing.T) {
	api := interceptor.NewClient(server(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if _, nodes := list.(*corev1.NodeList); nodes {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
			}
			if _, pools := list.(*v1alpha1.BackendPoolList); pools && o.Namespace == "" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "backendpools"}, "", nil)
			}
			return c.List(ctx, list, opts...)
		},
	})
	explanation, err := Reader{API: api, Now: noon}.ExplainService(t.Context(), "shop", "web")
	if err != nil || len(explanation.Pools) != 1 || explanation.Pools[0].Name != "web.kubernetes" {
		t.Fatalf("%v, %+v", err, explanation.Pools)
	}
	want := []Member{{Address: "10.0.0.1", State: InPool}, {Node: "n2", Address: "10.0.0.2", State: Down, Why: "it drains"}, {Address: "10.0.0.9", State: InPool}}
	if got := explanation.Pools[0].Members; !explanation.NodesUnseen || !slices.Equal(got, want) {
		t.Errorf("nodes unseen %t, %+v", explanation.NodesUnseen, got)
	}
	if _, err := (Reader{API: api, Now: noon}).ExplainNode(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "reading BackendPools") {
		t.Errorf("a node, without the right: %v", err)
	}
}

// Missing objects are named in the error.
func TestMissingObjects(t *testing.T) {
	r := Reader{API: server(), Now: noon}
	for name, tell := range map[string]func() (Explanation, error){
		`services "none" not found`:              func() (Explanation, error) { return r.ExplainService(t.Context(), "shop", "none") },
		`backendpools.weir.dev "none" not found`: func() (Explanation, error) { return r.ExplainPool(t.Context(), "shop", "none") },
		`nodes "none" not found`:                 func() (Explanation, error) { return r.ExplainNode(t.Context(), "none") },
	} {
		if _, err := tell(); fmt.Sprint(err) != name {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// The members at the last read take precedence over the record, which is written first; foreign and unnamed
// members are reported.
func TestTheStatusKnowsWhatIsMissing(t *testing.T) {
	p := pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}}, "10.0.0.1", "10.0.0.2")
	p.Status.Down = nil
	p.Status.Members = &v1alpha1.OutOfSyncMembers{
		Missing: &v1alpha1.MemberSample{Count: 8, Named: []v1alpha1.Member{{Node: "n1", Address: "10.0.0.1"}}},
		Foreign: &v1alpha1.MemberSample{Count: 1, Named: []v1alpha1.Member{{Address: "10.9.9.9"}}},
	}
	slice := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	var nodes []corev1.Node
	for i, name := range []string{"n1", "n2"} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}},
		}})
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, NodeName: &name})
	}
	foreign := Member{Address: "10.9.9.9", State: Foreign}
	want := []Member{foreign, {Node: "n1", Address: "10.0.0.1", State: Missing}, {Node: "n2", Address: "10.0.0.2", State: InPool}}
	if got := memberStates(p, []discoveryv1.EndpointSlice{slice}, nodes, noon); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = []Member{{Node: "n1", Address: "10.0.0.1", State: Missing}, {Address: "10.0.0.2", State: InPool}, foreign}
	if got := recordedMembers(p); !slices.Equal(got, want) {
		t.Errorf("without Nodes: %+v, want %+v", got, want)
	}
	var text strings.Builder
	shown := newPool(p, noon)
	shown.Members = want
	Explanation{At: noon}.writePool(&text, shown)
	if !strings.Contains(text.String(), "\n  7 more are missing") {
		t.Error(text.String())
	}
}

// A member with a pod that starts is no surplus, and a node that is no member is not missing because a pod starts there.
func TestAMemberThatStarts(t *testing.T) {
	p := pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}}, "10.0.0.1")
	p.Status.Down = nil
	slice := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	var nodes []corev1.Node
	for i, name := range []string{"n1", "n2"} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}},
		}})
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &name, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}})
	}
	want := []Member{{Node: "n1", Address: "10.0.0.1", State: InPool}}
	if got := memberStates(p, []discoveryv1.EndpointSlice{slice}, nodes, noon); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// For nodes left out of a pool of network interfaces the reason is shown: from their objects, or from Azure.
// Of two nodes with one address, the one that is not leaving counts.
func TestNodesWithoutAMachine(t *testing.T) {
	p := pool("weir-system", "nodes.kubernetes", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}, Membership: v1alpha1.MembershipNetworkInterface}, "10.0.0.1", "10.0.0.2")
	p.Status.Down = nil
	p.Status.Unusable = []v1alpha1.UnusableNode{{Node: "n2", Address: "10.0.0.2", Reason: "Azure has no virtual machine n2"}}
	var nodes []corev1.Node
	for i, id := range []string{"azure://" + machinesOf + "n1", "azure://" + machinesOf + "n2", "", "aws:///i-1", "azure://" + machinesOf + "n1"} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}, Spec: corev1.NodeSpec{ProviderID: id}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i%4+1)}}
		nodes = append(nodes, n)
	}
	nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	want := []Member{
		{Node: "n1", State: LeftOut, Why: "its address 10.0.0.1 is also that of node n5"}, {Node: "n2", Address: "10.0.0.2", State: LeftOut, Why: "Azure has no virtual machine n2"},
		{Node: "n3", State: LeftOut, Why: "it has no spec.providerID, so its machine is not known: the cloud provider has to set it"},
		{Node: "n4", State: LeftOut, Why: `its spec.providerID "aws:///i-1" names no virtual machine of Azure`}, {Node: "n5", Address: "10.0.0.1", State: InPool},
	}
	if got := memberStates(p, nil, nodes, noon); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

const machinesOf = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/"

// A paused pool shows the end of the pause and that changes are kept.
func TestNextStepOfAPausedPool(t *testing.T) {
	p := pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, Paused: true})
	p.Status.Conditions[0].Reason = v1alpha1.ReasonPaused
	for want, pause := range map[string]*v1alpha1.Pause{
		"changes are written when it resumes, when a user runs weir resume; Azure accepts no request before 12:05:00":      nil,
		"changes are written when it resumes, at 2026-03-01T13:00:00Z by itself; Azure accepts no request before 12:05:00": {Until: new(ago(-time.Hour))},
	} {
		p.Spec.Pause = pause
		if pool := newPool(p, noon); pool.Next != want || pool.Cause != v1alpha1.ReasonPaused || pool.Pause == nil {
			t.Errorf("%+v", pool)
		}
	}
}

// A contested pool, or one without some nodes, is not reported as in sync.
// A pool that is in sync and empty, and one that Azure rejects with any code, have a fix with their names.
func TestFixesOfPools(t *testing.T) {
	for _, tt := range []struct {
		reason, message, code string
		want                  string
	}{
		{v1alpha1.ReasonInSync, "in sync with no nodes", "", "kubectl get endpointslices -n shop -l kubernetes.io/service-name=web "},
		{v1alpha1.ReasonFailed, "the last attempt failed: write pool lb/web: 400 InvalidResourceReference: no such network", "InvalidResourceReference", "weir retry -n shop backendpool/web.edge"},
	} {
		p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.edge"}, Spec: v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}}}
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: tt.reason, Message: tt.message}}
		p.Status.LastOutcome = &v1alpha1.AttemptOutcome{Code: tt.code}
		if got := newPool(p, noon).remedy(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestPoolThatOnlyLooksInSync(t *testing.T) {
	for _, tt := range []struct {
		message   string
		contested bool
		want      string
	}{
		{"in sync with 2 nodes", false, v1alpha1.ReasonInSync},
		{"in sync with 2 nodes", true, v1alpha1.ConditionContested},
		{"in sync with 2 nodes; left out: n3 has no InternalIP of IPv4", false, status.NodesLeftOut},
	} {
		p := &v1alpha1.BackendPool{Status: v1alpha1.BackendPoolStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInSync, Message: tt.message},
		}}}
		if tt.contested {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionContested, Status: metav1.ConditionTrue, Message: "another writer"})
		}
		if pool := newPool(p, noon); pool.State != tt.want || pool.Cause != tt.want {
			t.Errorf("%q, contested %t: state %s, cause %s, want %s", tt.message, tt.contested, pool.State, pool.Cause, tt.want)
		}
	}
}
