// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
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
	want := []Limit{
		{"Kubernetes", LimitRules, 100, 180, 1500},
		{"Kubernetes", LimitFrontends, 2, 3, 600},
		{"Kubernetes", LimitMachineRules, 190, 290, 299},
		{"Kubernetes-internal", LimitRules, 90, 110, 1500},
		{"Kubernetes-internal", LimitFrontends, 1, 1, 600},
		{"Kubernetes-internal", LimitLinks, 0, 1, 8},
		{"nsg", LimitSecurityRules, 1, 2, 1000},
		{"nsg", LimitSecuritySources, 0, 2, 4000},
		{"nsg", LimitSecurityDestinations, 2, 4, 4000},
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
	if got := LimitsOf(sets, 1500, 8, true); !slices.Contains(got, Limit{"Kubernetes", LimitAvailabilitySets, 1, 136, 150}) || !got[len(got)-1].IsNear() {
		t.Errorf("%+v", got)
	}
	if got := LimitsOf(sets, 1500, 8, false); len(got) != 2 {
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
		if l.Name == LimitMachineRules {
			t.Errorf("pools of addresses have no rules of machines: %+v", l)
		}
	}
}
