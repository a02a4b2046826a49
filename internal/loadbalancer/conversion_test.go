// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// kinds is a cluster with some foreign members and some BackendPools of the other kind.
type kinds struct {
	Cluster
	foreign          []string
	converts, paused bool
	err              error
}

func (k kinds) ForeignMembers(context.Context, lb.Pool) ([]string, error) { return k.foreign, k.err }
func (k kinds) ConversionState(pool lb.PoolID) (converting, paused bool) {
	return k.converts && pool.Name == "k", k.paused
}

// knows is an Azure that resolves the machines of a pool.
type knows struct {
	Azure
	err error
}

func (k knows) ResolveMachines(_ context.Context, pool lb.Pool) (lb.Pool, error) { return pool, k.err }

// Where rules go while the shared pool has the other kind, and which pools are then deleted.
func TestRulesDuringAConversion(t *testing.T) {
	const interim = "k_addresses"
	named := func(name string, nic bool, members int) lb.Pool {
		return lb.Pool{ID: lb.PoolID{Name: name}, NIC: nic, Addresses: make([]lb.Address, members)}
	}
	for about, tt := range map[string]struct {
		absent, interfaces, rehearsal bool // absent: without the key
		cluster                       kinds
		pools                         []lb.Pool
		rule                          string // the pool of the Service's rule; empty for none
		pinned                        bool
		want                          string
	}{
		"of the kind":                             {pools: []lb.Pool{named("k", false, 2)}, rule: "k", want: "k false, retired [k_addresses k_addresses-IPv6]"},
		"none yet":                                {rule: "", want: "k false, retired [k_addresses k_addresses-IPv6]"},
		"empty":                                   {pools: []lb.Pool{named("k", false, 0)}, interfaces: true, rule: "k", want: "k true, retired [k_addresses k_addresses-IPv6]"},
		"of interfaces":                           {pools: []lb.Pool{named("K", true, 2)}, rule: "k", want: interim + " false, retired [k_addresses-IPv6 k], waits for [k]"},
		"of interfaces, and the key is absent":    {absent: true, pools: []lb.Pool{named("k", true, 2)}, rule: "k", want: "k false, retired [k_addresses k_addresses-IPv6]"},
		"of addresses":                            {pools: []lb.Pool{named("k", false, 2)}, interfaces: true, rule: "k", want: interim + " false, retired [k_addresses-IPv6 k], waits for [k]"},
		"gone, its BackendPool is there":          {pools: []lb.Pool{named(interim, false, 2)}, interfaces: true, cluster: kinds{converts: true}, rule: interim, want: interim + " false, retired [k_addresses-IPv6 k], waits for [k]"},
		"gone, with its BackendPool":              {pools: []lb.Pool{named(interim, false, 2)}, interfaces: true, rule: interim, want: "k true, retired [k_addresses k_addresses-IPv6]"},
		"others are in it":                        {pools: []lb.Pool{named("k", true, 2)}, cluster: kinds{foreign: []string{"x"}}, rule: "k", want: "k true, retired [k_addresses-IPv6], kept [x]"},
		"others are in it, and the rule has left": {pools: []lb.Pool{named("k", true, 2), named(interim, false, 2)}, cluster: kinds{foreign: []string{"x"}}, rule: interim, want: interim + " false, retired [k_addresses-IPv6], kept [x]"},
		"others are in it, and a rule is new":     {pools: []lb.Pool{named("k", true, 2), named(interim, false, 2)}, cluster: kinds{foreign: []string{"x"}}, want: interim + " false, retired [k_addresses-IPv6], kept [x]"},
		"an outbound rule refers to it":           {pools: []lb.Pool{named("k", true, 2)}, pinned: true, rule: "k", want: "k true, retired [k_addresses-IPv6], kept []"},
		"its BackendPool is paused":               {pools: []lb.Pool{named("k", true, 2)}, cluster: kinds{converts: true, paused: true}, rule: "k", want: "k true, retired [k_addresses-IPv6], kept []"},
		"a rehearsal":                             {rehearsal: true, pools: []lb.Pool{named("k", true, 2)}, rule: "k", want: "k true, retired [k_addresses-IPv6], waits for [k]"},
	} {
		t.Run(about, func(t *testing.T) {
			set := Settings{Settings: service.Settings{ClusterName: "k", Interfaces: tt.interfaces, ConvertsPools: !tt.absent}}
			l := &loadBalancer{LoadBalancers: &LoadBalancers{cfg: Config{Settings: set, Cluster: tt.cluster, Azure: knows{}, SkipDrain: tt.rehearsal}}}
			observed := lb.LoadBalancer{Etag: "1", Pools: tt.pools, Pinned: map[string]bool{"k": tt.pinned}}
			if tt.rule != "" {
				observed.Rules = []lb.Rule{{Name: "aa-TCP-80", Pool: tt.rule}}
			}
			conversions, err := l.poolConversions(t.Context(), observed)
			if err != nil {
				t.Fatal(err)
			}
			j := newJob(Request{Owner: "aa", Desired: &service.Spec{
				Rules: []lb.Rule{{Name: "aa-TCP-80", Pool: "k"}}, Pools: []service.Pool{{Name: "k", Family: lb.IPv4, Shared: true, Interfaces: tt.interfaces}},
			}}, false)
			l.setInterimPools(j, observed, conversions)
			got := fmt.Sprintf("%s %t, retired %v", j.rules[0].Pool, j.Pools[0].Interfaces, l.replacedPools([]*job{j}, observed, conversions))
			if j.rules[0].Pool != j.Pools[0].Name || j.Desired.Rules[0].Pool != "k" {
				t.Errorf("the rule goes to %s, and its pool is %s", j.rules[0].Pool, j.Pools[0].Name)
			}
			l.recordConversions(j, observed)
			for _, e := range j.DrainingPools {
				got += fmt.Sprintf(", waits for [%s]", e.Pool.Name)
			}
			for _, k := range j.Retained {
				got += fmt.Sprintf(", kept %v", k.Members)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A Service that moves during a conversion gets the BackendPools of its new load balancer, whatever the pools
// of the old one. One that only leaves, because the previous process moved it, needs its wanted pools.
func TestMovedServiceKeepsPoolsOfItsTarget(t *testing.T) {
	interim := service.Pool{Name: "k_addresses", Family: lb.IPv4, Shared: true}
	shared := service.Pool{Name: "k", Family: lb.IPv4, Shared: true}
	for about, tt := range map[string]struct {
		arrived, want []service.Pool
	}{
		"it has arrived at an interim pool": {arrived: []service.Pool{interim}, want: []service.Pool{interim}},
		"it only leaves":                    {want: []service.Pool{shared}},
	} {
		l := &loadBalancer{LoadBalancers: &LoadBalancers{cfg: Config{Cluster: kinds{}, Azure: knows{}}}}
		j := newJob(Request{Owner: "aa", Desired: &service.Spec{Rules: []lb.Rule{{Name: "aa-TCP-80", Pool: "k"}}, Pools: []service.Pool{shared}}}, false)
		j.steps = []step{{on: lb.LoadBalancerID{Name: "k-internal"}, remove: true}}
		if tt.arrived != nil {
			j.Pools = tt.arrived
		}
		observed := lb.LoadBalancer{Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}, NIC: true}}, Rules: []lb.Rule{{Name: "aa-TCP-80", Pool: "k"}}}
		if err := l.holdRules(t.Context(), []*job{j}, observed, nil); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(j.Pools, tt.want) || len(j.rules) > 0 || len(j.FillingPools) > 0 {
			t.Errorf("%s: pools %v, rules %v, filling %v; want pools %v", about, j.Pools, j.rules, j.FillingPools, tt.want)
		}
	}
}

// If the owners of a pool's members are unknown, nothing moves.
func TestPoolWithUnknownMembers(t *testing.T) {
	broken := errors.New("not now")
	for _, c := range []Config{{Azure: knows{err: broken}, Cluster: kinds{}}, {Azure: knows{}, Cluster: kinds{err: broken}}} {
		c.ClusterName, c.ConvertsPools = "k", true
		l := &loadBalancer{LoadBalancers: &LoadBalancers{cfg: c}}
		if _, err := l.poolConversions(t.Context(), lb.LoadBalancer{Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}, NIC: true, Addresses: make([]lb.Address, 1)}}}); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	}
}
