// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

func TestLimitsOf(t *testing.T) {
	id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "Kubernetes"}
	balancer := func(name string, rules, frontends int) lb.LoadBalancer {
		id.Name = name
		b := lb.LoadBalancer{ID: id, Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{LoadBalancer: id, Name: "nodes"}, NIC: true}}}
		for range rules {
			b.Rules = append(b.Rules, lb.Rule{Pool: "nodes"})
		}
		b.Frontends = make([]lb.Frontend, frontends)
		return b
	}
	group := func(sources ...[]string) lb.SecurityGroup {
		g := lb.SecurityGroup{ID: lb.ResourceID{Name: "nsg"}, Etag: "1"}
		for _, s := range sources {
			g.Rules = append(g.Rules, lb.SecurityRule{Sources: s, Destinations: []string{"192.0.2.1", "192.0.2.2"}})
		}
		return g
	}
	d := Changes{
		LoadBalancers: []ResourceChange[lb.LoadBalancer]{
			{balancer("Kubernetes", 100, 2), balancer("Kubernetes", 180, 3)},
			{balancer("Kubernetes-internal", 90, 1), balancer("Kubernetes-internal", 110, 1)},
			{balancer("gone", 1, 1), lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "gone"}}},
		},
		Links: []ResourceChange[lb.PrivateLinkService]{
			{After: lb.PrivateLinkService{Etag: "1", Frontends: []string{"/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/loadBalancers/kubernetes-internal/frontendIPConfigurations/a"}}},
			{Before: lb.PrivateLinkService{Etag: "1", Frontends: []string{"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/other/frontendIPConfigurations/a"}}},
		},
		Groups: []ResourceChange[lb.SecurityGroup]{{group([]string{"Internet"}), group([]string{"Internet"}, []string{"10.0.0.0/8", "192.0.2.7"})}},
	}
	want := []plan.LimitUsage{
		{Resource: "Kubernetes", Name: plan.LimitRules, Was: 100, Used: 180, Max: 1500},
		{Resource: "Kubernetes", Name: plan.LimitFrontends, Was: 2, Used: 3, Max: 600},
		{Resource: "Kubernetes", Name: plan.LimitMachineRules, Was: 190, Used: 290, Max: 299},
		{Resource: "Kubernetes-internal", Name: plan.LimitRules, Was: 90, Used: 110, Max: 1500},
		{Resource: "Kubernetes-internal", Name: plan.LimitFrontends, Was: 1, Used: 1, Max: 600},
		{Resource: "Kubernetes-internal", Name: plan.LimitPrivateLinkServices, Was: 0, Used: 1, Max: 8},
		{Resource: "nsg", Name: plan.LimitSecurityRules, Was: 1, Used: 2, Max: 1000},
		{Resource: "nsg", Name: plan.LimitSecuritySources, Was: 0, Used: 2, Max: 4000},
		{Resource: "nsg", Name: plan.LimitSecurityDestinations, Was: 2, Used: 4, Max: 4000},
	}
	if got := LimitsOf(d, 1500, 8, true); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	near := 0
	machines := func(n int) lb.LoadBalancer {
		b := balancer("Kubernetes", 0, 0)
		for i := range n {
			b.Pools[0].Addresses = append(b.Pools[0].Addresses, lb.Address{Machine: fmt.Sprint("/virtualmachines/", i)})
		}
		b.Pools[0].Addresses = append(b.Pools[0].Addresses, b.Pools[0].Addresses[0], lb.Address{Machine: "/virtualMachineScaleSets/s/virtualMachines/1"}, lb.Address{})
		return b
	}
	sets := Changes{LoadBalancers: []ResourceChange[lb.LoadBalancer]{{machines(1), machines(136)}}}
	if got := LimitsOf(sets, 1500, 8, true); !slices.Contains(got, plan.LimitUsage{Resource: "Kubernetes", Name: plan.LimitAvailabilitySets, Was: 1, Used: 136, Max: 150}) || !got[0].IsNear() {
		t.Errorf("%+v", got)
	}
	if got := LimitsOf(sets, 1500, 8, false); len(got) != 1 || got[0].Name != plan.LimitPoolMembers {
		t.Errorf("availability sets of addresses: %+v", got)
	}
	for _, l := range want {
		if l.IsNear() {
			near++
		}
	}
	if near != 1 {
		t.Errorf("%d limits are nearly used up, want the machines' alone", near)
	}
	for _, l := range LimitsOf(d, 1500, 8, false) {
		if l.Name == plan.LimitMachineRules {
			t.Errorf("pools of addresses have no rules of machines: %+v", l)
		}
	}
}
