// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/test/referencepage"
)

var id = lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}

func balancer(rules int, pool string, members int) lb.LoadBalancer {
	b := lb.LoadBalancer{ID: id, Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{LoadBalancer: id, Name: "Nodes"}, Addresses: make([]lb.Address, members)}}}
	for i := range rules {
		b.Rules = append(b.Rules, lb.Rule{Name: fmt.Sprint(i), Frontend: "a", Pool: pool})
	}
	return b
}

// using returns a state that uses n of a limit.
func using(name string, n int) LimitState {
	s := LimitState{Interfaces: true}
	single := func(b lb.LoadBalancer) LimitState {
		s.LoadBalancers = []lb.LoadBalancer{b}
		return s
	}
	group := func(rules ...lb.SecurityRule) LimitState {
		s.Groups = []lb.SecurityGroup{{ID: lb.ResourceID{Name: "nsg"}, Rules: rules}}
		return s
	}
	var prefixes []string
	for i := range n {
		prefixes = append(prefixes, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	switch name {
	case LimitRules:
		return single(balancer(n, "", 0))
	case LimitFrontends:
		return single(lb.LoadBalancer{ID: id, Frontends: make([]lb.Frontend, n)})
	case LimitMachineRules: // half of them on the internal twin
		public, internal := balancer(n/2, "nodes", 0), balancer(n-n/2, "NODES", 0)
		internal.ID.Name += "-internal"
		s.LoadBalancers = []lb.LoadBalancer{internal, public}
		return s
	case LimitAvailabilitySets:
		b := balancer(0, "", n)
		for i := range n {
			b.Pools[0].Addresses[i].Machine = fmt.Sprint("/virtualMachines/", i)
		}
		b.Pools[0].Addresses = append(b.Pools[0].Addresses, lb.Address{Machine: "/virtualMachineScaleSets/s/virtualMachines/1"}, lb.Address{})
		return single(b)
	case LimitPoolMembers:
		return single(balancer(0, "", n))
	case LimitFrontendMembers: // two rules of a pool of half of the members
		b := balancer(2, "nodes", n/2)
		b.Rules = append(b.Rules, lb.Rule{Frontend: "b", Pool: "nodes"})
		if n%2 > 0 {
			b.Pools = append(b.Pools, lb.Pool{ID: lb.PoolID{Name: "one"}, Addresses: make([]lb.Address, 1)})
			b.Rules = append(b.Rules, lb.Rule{Frontend: "A", Pool: "one"})
		}
		return single(b)
	case LimitMembers:
		b := balancer(1, "nodes", n-1)
		b.Pools = append(b.Pools, lb.Pool{ID: lb.PoolID{Name: "one"}, Addresses: make([]lb.Address, 1)})
		b.Rules = append(b.Rules, lb.Rule{Frontend: "b", Pool: "one"})
		return single(b)
	case LimitPrivateLinkServices:
		s.Links = append(s.Links, lb.PrivateLinkService{Frontends: []string{id.String() + "2/frontendIPConfigurations/a"}})
		for range n {
			s.Links = append(s.Links, lb.PrivateLinkService{Frontends: []string{strings.ToUpper(id.String()) + "/frontendIPConfigurations/a"}})
		}
		return single(lb.LoadBalancer{ID: id})
	case LimitSecurityRules:
		return group(make([]lb.SecurityRule, n)...)
	case LimitSecuritySources:
		return group(lb.SecurityRule{Sources: prefixes})
	case LimitSecurityDestinations:
		return group(lb.SecurityRule{Destinations: prefixes})
	}
	panic("no state for " + name)
}

func usageOfLimit(s LimitState, name string) (limit LimitUsage) {
	for _, u := range ListLimitUsages(s) {
		if u.Name == name && (limit.Name == "" || u.Used > limit.Used) {
			limit = u
		}
	}
	return limit
}

// Each limit is near from 80 % on and reached at 100 %.
func TestTable(t *testing.T) {
	for _, l := range Limits {
		if !strings.HasPrefix(l.Source, "https://learn.microsoft.com/") || (l.count == nil) == (l.countGroup == nil) {
			t.Errorf("%s: %q", l.Name, l.Source)
		}
		for _, percent := range []int{79, 80, 99, 100} {
			n := (l.Max*percent + 99) / 100
			if percent == 79 || percent == 99 {
				n = l.Max * percent / 100
			}
			u := usageOfLimit(using(l.Name, n), l.Name)
			if u.Used != n || u.Max != l.Max || u.IsNear() != (percent >= 80) || u.IsReached() != (percent == 100) {
				t.Errorf("%s, %d %%: want %d, got %+v", l.Name, percent, n, u)
			}
		}
	}
}

// The runbook lists the limits.
func TestRunbook(t *testing.T) {
	var b strings.Builder
	b.WriteString("| limit | most | what helps |\n|---|---|---|\n")
	for _, l := range Limits {
		fmt.Fprintf(&b, "| %s | [%d](%s) | %s |\n", l.Name, l.Max, l.Source, l.Fix)
	}
	referencepage.ExpectSection(t, "../../../docs/runbooks/WeirLimitNear.md", "limits", b.String())
}

// azure.json sets the limits of rules and Private Link Services. Without interfaces, machines do not count.
func TestState(t *testing.T) {
	s := using(LimitRules, 200)
	s.MaxRules, s.MaxLinks = 250, 32
	if u := usageOfLimit(s, LimitRules); u != (LimitUsage{"kubernetes", LimitRules, 200, 200, 250}) || !u.IsNear() {
		t.Errorf("%+v", u)
	}
	if u := usageOfLimit(s, LimitPrivateLinkServices); u.Max != 32 || u.IsNear() {
		t.Errorf("%+v", u)
	}
	for _, name := range []string{LimitMachineRules, LimitAvailabilitySets} {
		s := using(name, 140)
		if s.Interfaces = false; usageOfLimit(s, name).Used != 0 {
			t.Errorf("%s of addresses: %+v", name, usageOfLimit(s, name))
		}
	}
}
