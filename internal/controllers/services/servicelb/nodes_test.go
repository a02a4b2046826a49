// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// nodeSets is a cluster with nodes on the load balancer, and others elsewhere.
type nodeSets struct {
	Cluster
	here, elsewhere []netip.Addr
}

func (n *nodeSets) NodesOf(_ lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool) {
	if anywhere {
		return append(n.here[:len(n.here):len(n.here)], n.elsewhere...), true
	}
	return n.here, true
}

// What exists in Azure decides whether a Local Service has its own pool, so any node may matter for its security rules; for
// other Services, the nodes of their load balancer do.
func TestNodesThatMatterForSecurityRules(t *testing.T) {
	rules := []lb.Rule{{Name: "a-TCP-80", Transport: lb.TCP, Pool: "k", FrontendPort: 80, BackendPort: 30080}}
	shared, own := []service.Pool{{Name: "k", Family: lb.IPv4, Shared: true}}, []service.Pool{{Name: "shop-web", Family: lb.IPv4}}
	for about, tt := range map[string]struct {
		spec            service.Spec
		here, elsewhere bool // a new node there is a change
	}{
		"all nodes":                  {service.Spec{Rules: rules, Pools: shared}, true, false},
		"Local, with all nodes":      {service.Spec{Rules: rules, Pools: shared, OwnPools: own}, true, true},
		"Local, with a pool its own": {service.Spec{Rules: rules, Pools: own, OwnPools: own}, true, true},
		"floating IP":                {service.Spec{Rules: []lb.Rule{{FloatingIP: true}}, Pools: own, OwnPools: own}, false, false},
	} {
		cluster := &nodeSets{here: []netip.Addr{netip.MustParseAddr("10.0.9.1")}}
		r := New(Config{Cluster: cluster, Settings: Settings{HasSecurityGroup: true}})
		state := SyncState{request: &loadbalancer.Request{Desired: &tt.spec}, nodes: r.nodesAt(&tt.spec, lb.LoadBalancerID{})}
		if r.haveNodesChanged(state, &tt.spec) {
			t.Errorf("%s: a change without one", about)
		}
		cluster.elsewhere = []netip.Addr{netip.MustParseAddr("10.0.9.2")}
		if got := r.haveNodesChanged(state, &tt.spec); got != tt.elsewhere {
			t.Errorf("%s: a node of another load balancer is a change: %t", about, got)
		}
		cluster.here, cluster.elsewhere = append(cluster.here, cluster.elsewhere...), nil
		if got := r.haveNodesChanged(state, &tt.spec); got != tt.here {
			t.Errorf("%s: a node of the load balancer is a change: %t", about, got)
		}
	}
}
