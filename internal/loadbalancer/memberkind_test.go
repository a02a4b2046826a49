// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// listCounter is an Azure that counts its lists.
type listCounter struct {
	Azure
	all   []lb.LoadBalancer
	calls int
}

func (l *listCounter) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	l.calls++
	return l.all, nil
}

// withKind is a cluster with BackendPools that add members of a kind.
type withKind struct {
	Cluster
	kind service.MemberKind
}

func (w withKind) MemberKind(lb.PoolID) service.MemberKind { return w.kind }

// Without the key in azure.json, the pools of a load balancer keep their kind, then that of their BackendPools; a new
// load balancer gets that of the cluster's others, and only the first one the default. Limits of machines follow.
func TestTheKindOfMembersIsThatOfWhatExists(t *testing.T) {
	balancer := func(name string, nic bool, members int) lb.LoadBalancer {
		if members == 0 {
			return lb.LoadBalancer{ID: lb.LoadBalancerID{Name: name}}
		}
		return lb.LoadBalancer{ID: lb.LoadBalancerID{Name: name}, Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}, NIC: nic, Addresses: make([]lb.Address, members)}}}
	}
	named := func(b lb.LoadBalancer, name string) lb.LoadBalancer { b.ID.Name = name; return b }
	ofService := balancer("k", false, 2)
	ofService.Pools[0].ID.Name, ofService.Rules = "shop-web", []lb.Rule{{Name: "a01-TCP-80", Pool: "shop-web"}}
	for _, tt := range []struct {
		about             string
		interfaces, fixed bool // azure.json
		backendPools      service.MemberKind
		here              lb.LoadBalancer
		others            []lb.LoadBalancer
		want              bool
		lists             int
	}{
		{"nothing exists", true, false, 0, balancer("k", false, 0), nil, true, 1},
		{"nothing exists, with several load balancers", false, false, 0, balancer("k", false, 0), nil, false, 1},
		{"it has addresses", true, false, service.InterfaceMembers, balancer("k", false, 2), nil, false, 0},
		{"it has interfaces", false, false, service.AddressMembers, balancer("k", true, 2), nil, true, 1},
		{"it is new, and its BackendPool has addresses", true, false, service.AddressMembers, balancer("k", false, 0), []lb.LoadBalancer{balancer("k-internal", true, 2)}, false, 0},
		{"it is new, and another has addresses", true, false, 0, balancer("k", false, 0), []lb.LoadBalancer{balancer("k-internal", false, 2)}, false, 1},
		{"it is new, and another owner's has addresses", true, false, 0, balancer("k", false, 0), []lb.LoadBalancer{balancer("other", false, 2)}, true, 1},
		{"it has no members yet, and another has addresses", true, false, 0, lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "k"}, Etag: "1"}, []lb.LoadBalancer{balancer("k-internal", false, 2)}, false, 1},
		{"it has no members yet, with several load balancers", false, false, 0, lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "k"}, Etag: "1"}, nil, false, 0},
		{"it has only pools of Services", true, false, 0, ofService, nil, false, 0},
		{"it is new, and another has only pools of Services", true, false, 0, balancer("k", false, 0), []lb.LoadBalancer{named(ofService, "k-internal")}, false, 1},
		{"it has only pools of Services, and its BackendPool gets interfaces", true, false, service.InterfaceMembers, ofService, nil, true, 1},
		{"it has only pools of Services, and another has interfaces", true, false, 0, ofService, []lb.LoadBalancer{balancer("k-internal", true, 2)}, false, 0},
		{"azure.json has addresses", false, true, service.InterfaceMembers, balancer("k", true, 2), nil, false, 0},
	} {
		azure := &listCounter{all: tt.others}
		b := New(Config{Azure: azure, Cluster: withKind{kind: tt.backendPools}, Settings: Settings{
			Settings:       service.Settings{ClusterName: "k", Interfaces: tt.interfaces, ConvertsPools: tt.fixed},
			Configurations: []service.Configuration{{Name: "k"}},
		}})
		got, err := (&loadBalancer{LoadBalancers: b, id: tt.here.ID}).readMemberKind(t.Context(), tt.here)
		if err != nil || got != tt.want || azure.calls != tt.lists {
			t.Errorf("%s: interfaces %t after %d lists, %v; want %t after %d", tt.about, got, azure.calls, err, tt.want, tt.lists)
		}
		b.cache.recordState(tt.here)
		if b.limitsInput("k").PeerRules != nil != tt.want {
			t.Errorf("%s: machines are limited: %t", tt.about, !tt.want)
		}
	}
}

// A Service counts for the pool that it uses in the end: that of its rules, whatever a new Service would get.
func TestLimitsCountTheSelectedPool(t *testing.T) {
	rules := func(owner, pool string, n int) (rules []lb.Rule) {
		for i := range n {
			rules = append(rules, lb.Rule{Name: fmt.Sprintf("%s-TCP-%d", owner, i), Transport: lb.TCP, Frontend: owner, Pool: pool, FrontendPort: int32(i + 1), BackendPort: int32(i + 1), FloatingIP: true})
		}
		return rules
	}
	shared, own := service.Pool{Name: "k", Family: lb.IPv4, Shared: true}, service.Pool{Name: "shop-web", Family: lb.IPv4}
	for _, tt := range []struct {
		about    string
		several  bool
		byitself service.Pool // of a new Service
		has      string       // the pool of its rules
		exceeds  bool
	}{
		{"it uses a pool of its own", false, shared, "shop-web", false},
		{"it uses the pool of all nodes", false, shared, "k", true},
		{"it is new", false, shared, "", true},
		{"pools of all nodes have interfaces", true, own, "", true},
		{"pools of all nodes have interfaces, and it uses a pool of its own", true, own, "shop-web", false},
	} {
		observed := lb.LoadBalancer{
			ID: lb.LoadBalancerID{Name: "k"}, Etag: "1", SKU: lb.Standard, Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}, NIC: true, Addresses: make([]lb.Address, 2)}},
			Frontends: []lb.Frontend{{Name: "aa"}, {Name: "ab"}}, Rules: rules("ab", "k", 298),
		}
		if tt.has != "" {
			observed.Rules = append(observed.Rules, rules("aa", tt.has, 1)...)
		}
		b := New(Config{Azure: &listCounter{all: []lb.LoadBalancer{observed}}, Cluster: unbounded{}, Settings: Settings{
			Settings:       service.Settings{ClusterName: "k", SeveralLoadBalancers: tt.several},
			Configurations: []service.Configuration{{Name: "k"}}, MaxRules: 1500,
		}})
		b.cache.recordState(observed)
		desired := &service.Spec{Owner: "aa", Rules: rules("aa", tt.byitself.Name, 3), Pools: []service.Pool{tt.byitself}, OwnPools: []service.Pool{own}}
		j := newJob(Request{Service: "shop/web", Owner: "aa", Desired: desired, On: observed.ID}, false)
		if err := (&loadBalancer{LoadBalancers: b, id: observed.ID}).jobsOverLimit([]*job{j})["aa"]; (err != nil) != tt.exceeds {
			t.Errorf("%s: a round: %v", tt.about, err)
		}
		if err := b.checkLimitsLocked(PlacementRequest{Service: "shop/web", Owner: "aa", Desired: desired}, "k"); (err != nil) != tt.exceeds {
			t.Errorf("%s: a move: %v", tt.about, err)
		}
	}
}

// unbounded is a cluster without bounds and BackendPools.
type unbounded struct{ Cluster }

func (unbounded) MemberKind(lb.PoolID) service.MemberKind { return service.UnknownMembers }
func (unbounded) NamespaceBounds(namespace string) service.NamespaceSettings {
	return service.ParseNamespaceSettings(namespace, map[string]string{service.MaxRules: "1500", service.MaxFrontends: "600"})
}
func (unbounded) ExposedServices() []ExposedService { return nil }
