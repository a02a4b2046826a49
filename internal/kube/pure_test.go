// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/servicelb"
)

// stored is a snapshot of these objects. Pools count as taken, and as made by Weir, by their
// status, and every namespace may bind every pool.
func stored(t *testing.T, objects ...client.Object) *Cluster {
	t.Helper()
	place := placement{subscriptionID: "s0", resourceGroup: "rg0"}
	keyed := func(indexers toolscache.Indexers) toolscache.Indexer {
		return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	}
	s := &snapshot{
		slices: keyed(sliceIndexers()), services: keyed(nil), nodes: keyed(nodeIndexers()), pools: keyed(poolIndexers(place)), namespaces: keyed(nil),
		place: place,
	}
	for _, obj := range objects {
		store := s.pools
		switch obj.(type) {
		case *discoveryv1.EndpointSlice:
			store = s.slices
		case *corev1.Service:
			store = s.services
		case *corev1.Node:
			store = s.nodes
		}
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cluster{snap: s, serviceLBs: servicelb.New(servicelb.Config{}), opts: Options{Log: slog.New(slog.DiscardHandler)}, events: newEventQueue(Scheme(), nil, slog.Default())}
	c.connectPools(noAPI{})
	s.made = func(p *v1alpha1.BackendPool) bool { return p.Status.MadeFor != "" }
	s.right = func(p *v1alpha1.BackendPool, _ lb.PoolID) (backendpool.Right, backendpool.Refusal) {
		if s.made(p) {
			return backendpool.Own, backendpool.Refusal{}
		}
		return backendpool.Granted, backendpool.Refusal{}
	}
	return c
}

// noAPI is an API server that takes every status, and reads none.
type noAPI struct{ backendpool.API }

func (noAPI) Apply(_ context.Context, _ poolupdate.Ref, version string, _ *v1alpha1.BackendPoolStatus) (string, error) {
	return version, nil
}

// bp is a BackendPool of the Service web, made at minute n.
func bp(name string, minute int, edit ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Finalizers: []string{v1alpha1.Finalizer},
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
	}, Spec: v1alpha1.BackendPoolSpec{
		ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, IPFamily: "IPv4",
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: "lb"}, PoolName: "web",
	}}
	for _, f := range edit {
		f(p)
	}
	return p
}

func serviceOfType(kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "svc"}, Spec: corev1.ServiceSpec{Type: kind}}
}

func took(p *v1alpha1.BackendPool) {
	p.Status.PoolID = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Network/loadBalancers/lb/backendAddressPools/web"
}
func deleting(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) }

// A BackendPool that took a pool keeps it when the defaults change under it.
func TestPlacement(t *testing.T) {
	moved := placement{subscriptionID: "s9", resourceGroup: "rg9"}
	elsewhere := func(p *v1alpha1.BackendPool) { took(p); p.Spec.PoolName = "other" }
	for _, tt := range []struct {
		name string
		pool *v1alpha1.BackendPool
		want string
	}{
		{"defaults", bp("a", 0), "s9/rg9/lb/web"},
		{"named", bp("a", 0, func(p *v1alpha1.BackendPool) {
			p.Spec.LoadBalancer.SubscriptionID, p.Spec.LoadBalancer.ResourceGroup = "s1", "rg1"
		}), "s1/rg1/lb/web"},
		{"taken under other defaults", bp("a", 0, took), "s0/rg0/lb/web"},
		{"a status that speaks of another pool", bp("a", 0, elsewhere), "s9/rg9/lb/other"},
		{"a status that is no id", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Status.PoolID = "/a/../b" }), "s9/rg9/lb/web"},
	} {
		id, err := moved.of(tt.pool)
		got := fmt.Sprintf("%s/%s/%s/%s", id.LoadBalancer.SubscriptionID, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := (placement{subscriptionID: "s"}).of(bp("a", 0)); err == nil || !strings.Contains(err.Error(), "resource group") {
		t.Errorf("no resource group anywhere: %v", err)
	}
}

func TestNilConditions(t *testing.T) {
	yes, no := new(true), new(false)
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
		{NodeName: new("n"), Conditions: discoveryv1.EndpointConditions{}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes}},
	}}
	want := []membership.Endpoint{{Node: "n", Ready: true, Serving: true}, {}, {Serving: true, Terminating: true}}
	if got := sliceOf(es); got.Family != lb.IPv4 || !slices.Equal(got.Endpoints, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := sliceOf(&discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN}).Family; got != "" {
		t.Errorf("FQDN has family %q", got)
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1 "},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"}, {Type: corev1.NodeInternalIP, Address: "0.0.0.0"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeInternalIP, Address: "fd00::2"},
	}}}
	if got := internalIPs(node); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}) {
		t.Errorf("internal addresses %v", got)
	}
}

// What changes nothing that is read starts nothing: heartbeats and our own status
// writes are most of what a cluster sends.
func TestUpdatesThatStartNothing(t *testing.T) {
	c := stored(t)
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
	is := func(es *discoveryv1.EndpointSlice) {}
	for _, tt := range []struct {
		name          string
		check         func(event.UpdateEvent) bool
		before, after client.Object
		want          bool
	}{
		{"heartbeat", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"heartbeat, for pools of nodes", c.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"label", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), false},
		{"label, for pools of nodes", c.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), true},
		{"exclusion", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["kubernetes.azure.com/managed"] = "false" }), true},
		{"address", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.2" }), true},
		{"endpoint's own address", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Addresses = []string{"192.0.2.1"} }), true},
		{"readiness", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Conditions.Ready = new(false) }), true},
		{"moved", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Labels[discoveryv1.LabelServiceName] = "api" }), true},
		{"status of a BackendPool", poolChanged().Update, bp("a", 0), bp("a", 0, took), false},
		{"its deletion", poolChanged().Update, bp("a", 0), bp("a", 0, deleting), true},
		{"its finalizer", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Finalizers = nil }), true},
		{"its spec", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Generation++ }), true},
		{"a Service's ports", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("NodePort"), false},
		{"a Service's type", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("ClusterIP"), true},
	} {
		if got := tt.check(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A live change goes first, however long the initial list is.
func TestLiveChangesComeBeforeTheInitialList(t *testing.T) {
	objects := []client.Object{}
	for i := range 200 {
		name := fmt.Sprintf("svc-%d", i)
		objects = append(objects, bp(name, 0, func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef.Name, p.Spec.PoolName = name, name }))
	}
	c := stored(t, objects...)
	slice := func(i int) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", ResourceVersion: "1",
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("svc-%d", i)}}}
	}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	handler := mapped(c.servicesOfSlice)
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

// Whoever may edit a Service may edit its record: it costs no more than some reads, and names
// nothing but resource groups.
func TestARecordOfResourceGroupsIsBelievedInBounds(t *testing.T) {
	s := serviceOfType(corev1.ServiceTypeLoadBalancer)
	s.Annotations = map[string]string{GroupsAnnotation: "a, ../b, c/d, e,1,2,3,4,5,6,7,8,9"}
	if got := strings.Join(viewOf(s).Record.Groups, " "); got != "a e 1 2 3 4 5 6" {
		t.Errorf("believed: %s", got)
	}
}
