// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Which pool a Local Service uses, for every combination of settings, kind of the shared pool, and the pool that
// its rules use. Without the setting it is cloud-provider-azure's choice, and an own pool is retained.
func TestPoolOfALocalService(t *testing.T) {
	const (
		one, several          = false, true
		addresses, interfaces = false, true
	)
	for _, tt := range []struct {
		setting        LocalPools
		several, kind  bool
		fixed          bool // azure.json sets the kind
		none, all, own bool // uses an own pool, by what its rules use at present
	}{
		{"", one, addresses, false, false, false, true},
		{"", one, addresses, true, false, false, true},
		{"", one, interfaces, false, false, false, true},
		{"", one, interfaces, true, false, false, false},
		{"", several, addresses, false, true, true, true},
		{"", several, addresses, true, true, true, true},
		{"", several, interfaces, false, false, false, true},
		{"", several, interfaces, true, false, false, false},
		{AllNodes, one, addresses, false, false, false, false},
		{AllNodes, one, interfaces, true, false, false, false},
		{AllNodes, several, addresses, true, false, false, false},
		{AllNodes, several, interfaces, false, false, false, false},
		{OwnPools, one, addresses, false, true, true, true},
		{OwnPools, one, addresses, true, true, true, true},
		{OwnPools, one, interfaces, false, true, true, true},
		{OwnPools, several, addresses, true, true, true, true},
	} {
		set := Settings{LocalPools: tt.setting, SeveralLoadBalancers: tt.several, ConvertsPools: tt.fixed}
		got := [3]bool{set.UsesOwnPool(tt.kind, NoPool), set.UsesOwnPool(tt.kind, NodePool), set.UsesOwnPool(tt.kind, OwnPool)}
		if want := [3]bool{tt.none, tt.all, tt.own}; got != want {
			t.Errorf("localServicePools %q, several %t, interfaces %t, kind set %t: own pools %v for rules of no pool, of all nodes' and of its own; want %v",
				tt.setting, tt.several, tt.kind, tt.fixed, got, want)
		}
	}
}

// azure.json decides the kind of members. Without its key, what exists does, and then the default.
func TestMemberKinds(t *testing.T) {
	for _, tt := range []struct {
		fixed, configured bool
		existing          []MemberKind
		want              bool
	}{
		{true, false, []MemberKind{InterfaceMembers}, false},
		{true, true, []MemberKind{AddressMembers}, true},
		{false, true, nil, true},
		{false, false, nil, false},
		{false, true, []MemberKind{AddressMembers, InterfaceMembers}, false},
		{false, false, []MemberKind{UnknownMembers, InterfaceMembers}, true},
		{false, true, []MemberKind{UnknownMembers}, true},
	} {
		set := Settings{ConvertsPools: tt.fixed, Interfaces: tt.configured}
		if got := set.UsesInterfaces(tt.existing...); got != tt.want {
			t.Errorf("kind set %t, interfaces %t, existing %v: interfaces %t", tt.fixed, tt.configured, tt.existing, got)
		}
	}
	named := func(name string, nic bool, members int) lb.Pool {
		return lb.Pool{ID: lb.PoolID{Name: name}, NIC: nic, Addresses: make([]lb.Address, members)}
	}
	set := Settings{ClusterName: "k"}
	for want, pools := range map[MemberKind][]lb.Pool{
		UnknownMembers:   {named("K", false, 0), named("aksOutboundBackendPool", true, 3), named("shop-web", false, 1)},
		AddressMembers:   {named("aksOutboundBackendPool", true, 3), named("K", false, 2)},
		InterfaceMembers: {named("shop-web", false, 1), named("k", false, 0), named("k-IPv6", true, 2)},
	} {
		if got := set.NodeMembers(pools); got != want {
			t.Errorf("%v: members of kind %d, want %d", pools, got, want)
		}
	}
	if got := set.NodeMembers([]lb.Pool{named("k", true, 0)}); got != InterfaceMembers {
		t.Errorf("a pool of interfaces that shows IP configurations only: members of kind %d", got)
	}
	own := named("shop-web", false, 1)
	for _, tt := range []struct {
		want       MemberKind
		setting    LocalPools
		rule, pool string
		pools      []lb.Pool
	}{
		{AddressMembers, "", "A01-TCP-80", "Shop-Web", []lb.Pool{named("k", false, 0), own, named("aksOutboundBackendPool", true, 3)}},
		{UnknownMembers, "", "a01-TCP-80", "k", []lb.Pool{named("k", false, 1), own}},
		{UnknownMembers, "", "mine", "shop-web", []lb.Pool{own}},
		{UnknownMembers, "", "a01-TCP-80", "shop-web", []lb.Pool{named("shop-web", false, 0)}},
		{UnknownMembers, "", "a01-TCP-80", "shop-web", []lb.Pool{named("shop-web", true, 1)}},
		{UnknownMembers, OwnPools, "a01-TCP-80", "shop-web", []lb.Pool{own}}, // with interfaces, too
	} {
		set := Settings{ClusterName: "k", LocalPools: tt.setting}
		if got := set.ImpliedMembers(lb.LoadBalancer{Pools: tt.pools, Rules: []lb.Rule{{Name: tt.rule, Pool: tt.pool}}}); got != tt.want {
			t.Errorf("%v, rule %s of %s, localServicePools %q: members of kind %d, want %d", tt.pools, tt.rule, tt.pool, tt.setting, got, tt.want)
		}
	}
}

// On its load balancer a Service uses the pools that its rules have, where the setting does not decide; rules and
// pools agree, and one family's rule is enough.
func TestPoolsSelectedByExistingRules(t *testing.T) {
	for _, tt := range []struct {
		about      string
		setting    LocalPools
		local      bool
		interfaces bool
		rules      []string // pools of the Service's rules
		want       string
	}{
		{"no rules", "", true, false, nil, "kubernetes kubernetes-IPv6"},
		{"rules of all nodes' pool", "", true, false, []string{"Kubernetes"}, "kubernetes kubernetes-IPv6"},
		{"of an interim pool", "", true, false, []string{"kubernetes_addresses"}, "kubernetes kubernetes-IPv6"},
		{"of somebody's pool", "", true, false, []string{"mine"}, "kubernetes kubernetes-IPv6"},
		{"of its own", "", true, false, []string{"Shop-Web"}, "shop-web shop-web-ipv6"},
		{"of its own, of one family", "", true, false, []string{"kubernetes", "shop-web-ipv6"}, "shop-web shop-web-ipv6"},
		{"of its own, and it is not Local now", "", false, false, []string{"shop-web"}, "kubernetes kubernetes-IPv6"},
		{"of its own, and all share one", AllNodes, true, false, []string{"shop-web"}, "kubernetes kubernetes-IPv6"},
		{"of all nodes', and each has its own", OwnPools, true, false, []string{"kubernetes"}, "shop-web shop-web-ipv6"},
		{"of interfaces", "", true, true, []string{"kubernetes"}, "kubernetes(interfaces) kubernetes-IPv6(interfaces)"},
		{"beside interfaces, its own", OwnPools, true, true, []string{"kubernetes"}, "shop-web shop-web-ipv6"},
	} {
		set := testSettings()
		set.LocalPools = tt.setting
		s := newService(asDualStack)
		s.Local = tt.local
		spec := buildValidSpec(t, s, set)
		built := fmt.Sprint(spec.Rules, spec.Pools)
		rules := []lb.Rule{{Name: "somebody-TCP-80", Pool: "shop-web"}}
		for _, pool := range tt.rules {
			rules = append(rules, lb.Rule{Name: spec.Owner + "-TCP-80", Pool: pool})
		}
		got := ""
		next := spec.SelectPools(set, tt.interfaces, rules)
		for i, p := range next.Pools {
			if i > 0 {
				got += " "
			}
			if got += p.Name; p.Interfaces {
				got += "(interfaces)"
			}
			if next.Rules[i].Pool != p.Name || p.Shared != (next.Pools[0].Name == "kubernetes") {
				t.Errorf("%s: rule %s has pool %s, and the pool of its family is %+v", tt.about, next.Rules[i].Name, next.Rules[i].Pool, p)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
		if fmt.Sprint(spec.Rules, spec.Pools) != built {
			t.Errorf("%s: the Spec itself has changed", tt.about)
		}
	}
}

// A Service that has a pool of its own only because of what exists uses the pool of all nodes if its own cannot have the
// name. With pools of its own by default, it is rejected instead.
func TestAnOwnPoolThatCannotHaveItsName(t *testing.T) {
	for about, tt := range map[string]struct{ cluster, service, want string }{
		"the name of the pool of all nodes": {"shop-web", "web", "shop-web"},
		"too long":                          {"kubernetes", strings.Repeat("w", 76), "kubernetes"},
		"as long as a name may be":          {"kubernetes", strings.Repeat("w", 75), "shop-" + strings.Repeat("w", 75)},
	} {
		set := testSettings()
		set.ClusterName, set.LocalPools, set.SeveralLoadBalancers, set.Interfaces = tt.cluster, "", true, true
		s := newService()
		s.Local, s.Name = true, tt.service
		spec := buildValidSpec(t, s, set)
		next := spec.SelectPools(set, false, nil)
		if next.Pools[0].Name != tt.want || next.Rules[0].Pool != tt.want || next.Pools[0].Shared == (tt.want != tt.cluster) {
			t.Errorf("%s: %+v, rule of pool %s; want %s", about, next.Pools, next.Rules[0].Pool, tt.want)
		}
		set.Interfaces = false
		if _, problems := BuildSpec(s, set); (len(problems) > 0) != (tt.want == tt.cluster) {
			t.Errorf("%s: with pools of its own: %v", about, problems)
		}
	}
}
