// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/objects"
)

var (
	bp            = objects.NewBackendPool
	serviceOfType = objects.NewService
	took          = objects.WithAzurePool
	deleting      = objects.WithDeletion
)

func newReconciler(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	s := &cache.Snapshot{Placement: cache.Placement{SubscriptionID: "s0", ResourceGroup: "rg0"}}
	s.InMemory()
	if err := s.Add(objects...); err != nil {
		t.Fatal(err)
	}
	return &Reconciler{view: s, Statuses: backendpool.NewStatuses(nil), Controller: backendpool.New(backendpool.Config{Owner: allowAll{}}, nil)}
}

func newLoadBalanced(kind corev1.ServiceType) *corev1.Service {
	s := serviceOfType(kind)
	s.Finalizers = []string{metadata.ServiceFinalizer}
	return s
}

// Irrelevant updates, such as heartbeats and Weir's own status writes, trigger nothing.
func TestUpdatesThatStartNothing(t *testing.T) {
	r := newReconciler(t, bp("a", 0)) // not in sync
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "1"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}}
		edit(n)
		return n
	}
	slice := func(edit func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		es := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Endpoints: []discoveryv1.Endpoint{{NodeName: new("n")}}}
		edit(es)
		return es
	}
	as := func(n *corev1.Node) {}
	current := func(es *discoveryv1.EndpointSlice) {}
	for _, tt := range []struct {
		name          string
		check         func(event.UpdateEvent) bool
		before, after client.Object
		want          bool
	}{
		{"heartbeat", r.nodeChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"heartbeat, for pools of nodes", r.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"label", r.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), false},
		{"its machine becomes known", r.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Spec.ProviderID = "azure:///x" }), true},
		{"label, for pools of nodes", r.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), true},
		{"exclusion", r.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["kubernetes.azure.com/managed"] = "false" }), true},
		{"address", r.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.2" }), true},
		{"endpoint's own address", r.sliceChanged().Update, slice(current), slice(func(es *discoveryv1.EndpointSlice) { es.Generation++ }), true},
		{"readiness", r.sliceChanged().Update, slice(current), slice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Conditions.Ready = new(false) }), true},
		{"moved", r.sliceChanged().Update, slice(current), slice(func(es *discoveryv1.EndpointSlice) { es.Labels[discoveryv1.LabelServiceName] = "api" }), true},
		{"status of a BackendPool", poolChanged().Update, bp("a", 0), bp("a", 0, took), false},
		{"its deletion", poolChanged().Update, bp("a", 0), bp("a", 0, deleting), true},
		{"its finalizer", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Finalizers = nil }), true},
		{"its spec", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Generation++ }), true},
		{"a Service's ports", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("NodePort"), false},
		{"a Service's type", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("ClusterIP"), true},
		{"a Service gets a load balancer", serviceChanged().Update, serviceOfType("NodePort"), newLoadBalanced("NodePort"), false},
		{"a Service has given its load balancer up", serviceChanged().Update, newLoadBalanced("NodePort"), serviceOfType("NodePort"), true},
	} {
		if got := tt.check(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Live changes have priority over the initial list.
func TestLiveChangesComeBeforeTheInitialList(t *testing.T) {
	objects := []client.Object{}
	for i := range 200 {
		name := fmt.Sprintf("svc-%d", i)
		objects = append(objects, bp(name, 0, func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef.Name, p.Spec.PoolName = name, name }))
	}
	r := newReconciler(t, objects...)
	slice := func(i int) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", ResourceVersion: "1",
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("svc-%d", i)}}}
	}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	handler := k8s.MapHandler(r.servicesOfSlice)
	for i := range 200 {
		handler.Create(t.Context(), event.CreateEvent{Object: slice(i), IsInInitialList: true}, queue)
	}
	changed := slice(150)
	changed.ResourceVersion = "2"
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: slice(150), ObjectNew: changed}, queue)
	if first, _ := queue.Get(); first.Name != "svc-150" {
		t.Errorf("%s comes first, want the Service that changed", first.Name)
	}
}

// A change of a node has the pools looked at of the nodes that have its address, or its machine: which of them counts
// depends on all.
func TestPoolsOfDuplicates(t *testing.T) {
	node := func(name, place, address, machine string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{metadata.PlaceLabel: place}}, Spec: corev1.NodeSpec{ProviderID: machine}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return n
	}
	of := func(place string) *v1alpha1.BackendPool {
		p := objects.ManagedNodePool(objects.WithName(place))
		p.Spec.Nodes.Selector = metav1.LabelSelector{MatchLabels: map[string]string{metadata.PlaceLabel: place}}
		return p
	}
	web := bp("web", 0)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Endpoints:  []discoveryv1.Endpoint{{NodeName: new("b")}},
	}
	a := node("a", "one", "10.0.0.1", "azure:///m1")
	r := newReconciler(t, a, node("b", "two", "10.0.0.1", "azure:///m2"), node("c", "three", "10.0.0.3", "azure:///M1"), node("d", "four", "10.0.0.4", "azure:///m4"),
		of("one"), of("two"), of("three"), of("four"), web, slice, serviceOfType(corev1.ServiceTypeLoadBalancer))
	var names []string
	for _, req := range r.poolsOfNode(t.Context(), a) {
		names = append(names, req.Name)
	}
	if slices.Sort(names); fmt.Sprint(names) != "[one three two]" {
		t.Errorf("pools %v", names)
	}
	if got := r.servicesOnNode(t.Context(), a); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("Services %v", got)
	}
}

// shopAllowed allows only the namespace shop to use pools.
type shopAllowed struct{ backendpool.Owner }

func (shopAllowed) Permission(p *v1alpha1.BackendPool, _ lb.PoolID) (backendpool.Permission, backendpool.Rejection) {
	if p.Namespace == "shop" {
		return backendpool.Granted, backendpool.Rejection{}
	}
	return backendpool.NoPermission, backendpool.Rejection{}
}

// Nodes do not requeue a BackendPool that may not use its pool, and neither does its change requeue others.
func TestBackendPoolsWithoutPermission(t *testing.T) {
	ofNodes := func(namespace string, edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
		return bp("all", 0, append(edits, func(p *v1alpha1.BackendPool) {
			p.Namespace, p.Spec.ServiceRef, p.Spec.Nodes = namespace, nil, &v1alpha1.NodeMembers{}
		})...)
	}
	own, foreign, taken := ofNodes("shop"), ofNodes("evil"), ofNodes("left", took)
	r := newReconciler(t, own, foreign, taken)
	r.Controller = backendpool.New(backendpool.Config{Owner: shopAllowed{}}, nil)
	namespaces := func(requests []reconcile.Request) (names []string) {
		for _, req := range requests {
			names = append(names, req.Namespace)
		}
		slices.Sort(names)
		return names
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if got := namespaces(r.poolsOfNode(t.Context(), node)); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("a node requeues %v", got)
	}
	for p, want := range map[*v1alpha1.BackendPool][]string{own: {"evil", "left", "shop"}, foreign: {"evil"}, taken: {"evil", "left", "shop"}} {
		if got := namespaces(r.poolAndAffected(t.Context(), p)); !slices.Equal(got, want) {
			t.Errorf("the BackendPool of %s requeues %v, want %v", p.Namespace, got, want)
		}
	}
}
