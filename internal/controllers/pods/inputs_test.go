// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
)

// startingPool is a pool that the controller updates, and that no node has joined.
type startingPool struct{ timedOut netip.Addr }

func (startingPool) ResolveBinding(*v1alpha1.BackendPool, time.Time) backendpool.Binding {
	return backendpool.Binding{State: backendpool.Active}
}
func (startingPool) PoolOwner(lb.PoolID) *v1alpha1.BackendPool      { return nil }
func (startingPool) IsShown(*v1alpha1.BackendPool, netip.Addr) bool { return false }
func (startingPool) IsContested(*v1alpha1.BackendPool) bool         { return false }
func (p startingPool) HasStartTimedOut(_ *v1alpha1.BackendPool, ip netip.Addr, _ time.Time) bool {
	return ip == p.timedOut
}

// A gate waits for a node that joins before its pod is ready. Once that has timed out, only a ready pod makes the node a
// member, so the gate must not wait; a node with a ready pod is a member all the same.
func TestPoolOfAStartingNode(t *testing.T) {
	view := &cache.Snapshot{HealthPort: func(lb.PoolID) (int32, bool) { return 31000, true }}
	view.InMemory()
	endpoint := func(node string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{"10.244.0.1"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready}}
	}
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, PoolName: "shop-web", IPFamily: "IPv4",
			LoadBalancer: v1alpha1.LoadBalancerReference{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"},
		},
	}
	node := func(name, ip string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}}}
	}
	if err := view.Add(p, node("starts", "10.0.0.1"), node("serves", "10.0.0.2"), node("empty", "10.0.0.3"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: 31000,
		}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint("starts", false), endpoint("serves", true)},
		}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		node, timedOut string
		want           Pool
	}{
		"starts":               {"starts", "10.0.0.9", Pool{Name: "shop-web", IsDesired: true, JoinsEarly: true}},
		"timed out":            {"starts", "10.0.0.1", Pool{Name: "shop-web"}},
		"timed out, and ready": {"serves", "10.0.0.2", Pool{Name: "shop-web", IsDesired: true, JoinsEarly: true}},
		"no address yet":       {"new", "10.0.0.9", Pool{Name: "shop-web", JoinsEarly: true}},
		"no endpoint yet":      {"empty", "10.0.0.9", Pool{Name: "shop-web", JoinsEarly: true}},
	} {
		in := inputs{view: view, pools: startingPool{netip.MustParseAddr(tt.timedOut)}}
		if got := in.pool(p, tt.node, time.Now()); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// ownedPools are the owners and bindings of pools, and the rules of the Service.
type ownedPools struct {
	startingPool
	owner   *v1alpha1.BackendPool
	binding backendpool.Binding
}

func (p ownedPools) PoolOwner(lb.PoolID) *v1alpha1.BackendPool { return p.owner }
func (p ownedPools) ResolveBinding(*v1alpha1.BackendPool, time.Time) backendpool.Binding {
	return p.binding
}
func (ownedPools) RulePools(*corev1.Service) ([]lb.PoolID, bool) {
	return []lb.PoolID{{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"}, Name: "kubernetes"}}, true
}
func (ownedPools) HasServingProbes(*corev1.Service) (has, valid bool) { return true, true }

// A pool is foreign if its BackendPool may not write it, not if the cache has no BackendPool or Namespace yet. The pool of all
// nodes waits for a node that the cache does not have yet.
func TestPoolsThatAreNotSeenYet(t *testing.T) {
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nodes.lb"}, Spec: v1alpha1.BackendPoolSpec{
		Nodes: &v1alpha1.NodeMembers{}, PoolName: "kubernetes", IPFamily: "IPv4", LoadBalancer: v1alpha1.LoadBalancerReference{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"},
	}}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, Selector: map[string]string{"app": "web"},
	}, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "198.18.0.1"}}}}}
	rejected := func(reason string) backendpool.Binding {
		return backendpool.Binding{State: backendpool.NotAllowed, Reason: reason}
	}
	for name, tt := range map[string]struct {
		exists bool
		pools  ownedPools
		opens  Reason // empty if the gate waits
	}{
		"no BackendPool yet":   {},
		"not known yet":        {exists: true, pools: ownedPools{binding: rejected(v1alpha1.ReasonPending)}},
		"of another one":       {exists: true, pools: ownedPools{binding: rejected(v1alpha1.ReasonNotAllowed)}, opens: Foreign},
		"no node yet":          {exists: true, pools: ownedPools{owner: p, binding: backendpool.Binding{State: backendpool.Active}}},
		"not allowed any more": {exists: true, pools: ownedPools{owner: p, binding: rejected(v1alpha1.ReasonNotAllowed)}, opens: Foreign},
	} {
		view := &cache.Snapshot{Serving: cache.Serving{LoadBalancers: true}}
		view.InMemory()
		if err := view.Add(s); err != nil {
			t.Fatal(err)
		}
		if tt.exists {
			if err := view.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		in := inputs{view: view, pools: tt.pools, rules: tt.pools}
		services, _ := in.services(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "new"}}, time.Now())
		if d := Decide(Pod{Node: "new"}, services, Leader{Leads: true}, time.Now()); d.Reason != tt.opens {
			t.Errorf("%s: %+v, want reason %q", name, d, tt.opens)
		}
	}
}

// Nodes join a pool of nodes without pods. A gate waits for a node that is not seen or has no address yet, and not for one
// that cannot join.
func TestPoolOfNodes(t *testing.T) {
	view := &cache.Snapshot{}
	view.InMemory()
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "nodes"},
		Spec: v1alpha1.BackendPoolSpec{
			Nodes: &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}}, PoolName: "nodes", IPFamily: "IPv4",
			LoadBalancer: v1alpha1.LoadBalancerReference{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"},
		},
	}
	node := func(name, pool, ip string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}}}
		if ip != "" {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
		}
		return n
	}
	excluded := node("excluded", "a", "10.0.0.3")
	excluded.Labels[corev1.LabelNodeExcludeBalancers] = ""
	if err := view.Add(p, node("member", "a", "10.0.0.1"), node("new", "a", ""), node("other", "b", "10.0.0.2"), excluded); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Pool{
		"member":   {Name: "nodes", IsDesired: true},
		"new":      {Name: "nodes", JoinsEarly: true},
		"unseen":   {Name: "nodes", JoinsEarly: true},
		"other":    {Name: "nodes"},
		"excluded": {Name: "nodes"},
	} {
		if got := (inputs{view: view, pools: startingPool{}}).pool(p, name, time.Now()); got != want {
			t.Errorf("node %s: %+v, want %+v", name, got, want)
		}
	}
}
