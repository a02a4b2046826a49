// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// nearPercent is the share of a limit from which it is near.
const nearPercent = 80

// LimitUsage is how much of a limit a resource uses, before and after a planned change.
type LimitUsage struct {
	// Resource is the name of the load balancer or security group, or "region" and the name of the region.
	Resource string `json:"resource"`
	// Name is what Azure counts.
	Name string `json:"name"`
	Was  int    `json:"was"`
	Used int    `json:"used"`
	Max  int    `json:"max"`
}

// IsNear reports whether at least 80 % are used.
func (u LimitUsage) IsNear() bool { return u.Used > 0 && u.Used*100 >= u.Max*nearPercent }

// IsReached reports whether nothing is left.
func (u LimitUsage) IsReached() bool { return u.Used > 0 && u.Used >= u.Max }

// IsChanged reports whether the plan changes the usage.
func (u LimitUsage) IsChanged() bool { return u.Was != u.Used }

// Ratio returns the share that is used; 1 if the limit is reached.
func (u LimitUsage) Ratio() float64 { return float64(u.Used) / float64(max(u.Max, 1)) }

// CountsMembers reports whether nodes change the usage more than Services do.
func (u LimitUsage) CountsMembers() bool {
	return u.Name == LimitPoolMembers || u.Name == LimitFrontendMembers || u.Name == LimitMembers
}

// NeedsMembers reports whether the usage depends on the members of pools.
func (u LimitUsage) NeedsMembers() bool { return u.CountsMembers() || u.Name == LimitAvailabilitySets }

// Names of limits.
const (
	LimitRules            = "rules"
	LimitFrontends        = "frontends"
	LimitMachineRules     = "rules of a machine"
	LimitAvailabilitySets = "availability sets of a pool"
	LimitPoolMembers      = "members of a pool"
	// Azure counts a member once per rule of its pool.
	LimitFrontendMembers      = "backend IP configurations of a frontend"
	LimitMembers              = "backend IP configurations of all frontends"
	LimitPrivateLinkServices  = "Private Link Services"
	LimitSecurityRules        = "security rules"
	LimitSecuritySources      = "sources"
	LimitSecurityDestinations = "destinations"
)

// Limit is one of Azure's limits.
type Limit struct {
	Name string
	Max  int
	// Source documents the limit.
	Source string
	// Fix is how to use less.
	Fix string
	// count counts the usage of a load balancer or security group. The other one is nil.
	count      func(LimitState, lb.LoadBalancer) int
	countGroup func(service.SecurityUse) int
}

const (
	loadBalancerLimits = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer"
	networkLimits      = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#azure-resource-manager-virtual-networking-limits"
	deploymentErrors   = "https://learn.microsoft.com/azure/load-balancer/load-balancer-common-deployment-errors"
)

const (
	splitServices = "distribute the Services over several load balancers"
	useFewerPorts = "use fewer ports per Service: each member takes one per rule"
	useWiderRules = "use fewer source ranges or Services with rules of their own"
)

// Limits lists the limits. State may set lower or higher ones.
var Limits = []Limit{
	{Name: LimitRules, Max: 1500, Source: loadBalancerLimits, Fix: "each port takes a rule for each IP family: " + splitServices, count: func(_ LimitState, b lb.LoadBalancer) int { return len(b.Rules) }},
	{Name: LimitFrontends, Max: lb.MaxFrontends, Source: loadBalancerLimits, Fix: splitServices + ", or let them share addresses", count: func(_ LimitState, b lb.LoadBalancer) int { return len(b.Frontends) }},
	{Name: LimitMachineRules, Max: lb.MaxMachineRules, Source: deploymentErrors, Fix: "a public load balancer and its internal twin count together: " + splitServices, count: countMachineRules},
	{Name: LimitAvailabilitySets, Max: lb.MaxAvailabilitySets, Source: deploymentErrors, Fix: "create machines in availability sets or scale sets", count: countSingleMachines},
	{Name: LimitPoolMembers, Max: 5000, Source: loadBalancerLimits, Fix: "distribute the nodes over several load balancers", count: countPoolMembers},
	{Name: LimitFrontendMembers, Max: 10_000, Source: loadBalancerLimits, Fix: useFewerPorts, count: func(_ LimitState, b lb.LoadBalancer) int { return countMembers(b).frontend }},
	{Name: LimitMembers, Max: 500_000, Source: loadBalancerLimits, Fix: useFewerPorts, count: func(_ LimitState, b lb.LoadBalancer) int { return countMembers(b).all }},
	{Name: LimitPrivateLinkServices, Max: lb.MaxPrivateLinkServices, Source: networkLimits, Fix: splitServices, count: countLinks},
	{Name: LimitSecurityRules, Max: lb.MaxSecurityRules, Source: networkLimits, Fix: useWiderRules, countGroup: func(u service.SecurityUse) int { return u.Rules }},
	{Name: LimitSecuritySources, Max: lb.MaxSecurityPrefixes, Source: networkLimits, Fix: useWiderRules, countGroup: func(u service.SecurityUse) int { return u.Sources }},
	{Name: LimitSecurityDestinations, Max: lb.MaxSecurityPrefixes, Source: networkLimits, Fix: useWiderRules, countGroup: func(u service.SecurityUse) int { return u.Destinations }},
}

// LimitState is what uses the limits.
type LimitState struct {
	LoadBalancers []lb.LoadBalancer
	Links         []lb.PrivateLinkService
	Groups        []lb.SecurityGroup
	// Interfaces is set if nodes are members by their network interfaces: rules of machines and availability
	// sets count then.
	Interfaces bool
	// MaxRules and MaxLinks are those of azure.json; 0 for the table's.
	MaxRules, MaxLinks int
}

func (s LimitState) maxOf(l Limit) int {
	switch l.Name {
	case LimitRules:
		return cmp.Or(s.MaxRules, l.Max)
	case LimitPrivateLinkServices:
		return cmp.Or(s.MaxLinks, l.Max)
	}
	return l.Max
}

// ListLimitUsages returns the usage of each limit, by load balancer, then by security group.
func ListLimitUsages(s LimitState) []LimitUsage {
	var usages []LimitUsage
	add := func(resource string, l Limit, used int) {
		usages = append(usages, LimitUsage{Resource: resource, Name: l.Name, Was: used, Used: used, Max: s.maxOf(l)})
	}
	for _, b := range s.LoadBalancers {
		for _, l := range Limits {
			if l.count != nil {
				add(b.ID.Name, l, l.count(s, b))
			}
		}
	}
	for _, g := range s.Groups {
		use := service.SecurityUseOf(g.Rules)
		for _, l := range Limits {
			if l.countGroup != nil {
				add(g.ID.Name, l, l.countGroup(use))
			}
		}
	}
	return usages
}

// ListMemberUsages returns the usages of a load balancer that depend on the members of its pools.
func ListMemberUsages(b lb.LoadBalancer) []LimitUsage {
	usages := ListLimitUsages(LimitState{LoadBalancers: []lb.LoadBalancer{b}, Interfaces: true})
	return slices.DeleteFunc(usages, func(u LimitUsage) bool { return !u.NeedsMembers() })
}

// peerKey returns the same key for a public load balancer and its internal twin.
func peerKey(name string) string { return strings.TrimSuffix(strings.ToLower(name), "-internal") }

// countMachineRules counts the rules of a machine behind a load balancer and its twin. The count is the public one's, or
// the internal one's without a twin.
func countMachineRules(s LimitState, b lb.LoadBalancer) int {
	if !s.Interfaces {
		return 0
	}
	used := Counts{}
	for _, other := range s.LoadBalancers {
		if peerKey(other.ID.Name) != peerKey(b.ID.Name) {
			continue
		}
		if len(other.ID.Name) < len(b.ID.Name) {
			return 0
		}
		for pool, n := range CountRules(other) {
			used[pool] += n
		}
	}
	maximum := 0
	for _, n := range used {
		maximum = max(maximum, n)
	}
	return maximum
}

// countSingleMachines returns the most machines of a pool of network interfaces that are in no scale set. They are of
// as many availability sets at most.
func countSingleMachines(s LimitState, b lb.LoadBalancer) int {
	maximum := 0
	for _, p := range b.Pools {
		machines := map[string]bool{}
		for _, a := range p.Addresses {
			if m := strings.ToLower(a.Machine); s.Interfaces && m != "" && !strings.Contains(m, "/virtualmachinescalesets/") {
				machines[m] = true
			}
		}
		maximum = max(maximum, len(machines))
	}
	return maximum
}

func countPoolMembers(_ LimitState, b lb.LoadBalancer) int {
	maximum := 0
	for _, p := range b.Pools {
		maximum = max(maximum, len(p.Addresses))
	}
	return maximum
}

// memberCounts counts a member once per rule of its pool: for the frontend with the most, and for all.
type memberCounts struct{ frontend, all int }

func countMembers(b lb.LoadBalancer) (n memberCounts) {
	pools, frontends := map[string]int{}, map[string]int{}
	for _, p := range b.Pools {
		pools[strings.ToLower(p.ID.Name)] = len(p.Addresses)
	}
	for _, r := range b.Rules {
		name, members := strings.ToLower(r.Frontend), pools[strings.ToLower(r.Pool)]
		frontends[name] += members
		n.frontend, n.all = max(n.frontend, frontends[name]), n.all+members
	}
	return n
}

func countLinks(s LimitState, b lb.LoadBalancer) (n int) {
	prefix := strings.ToLower(b.ID.String()) + "/"
	for _, p := range s.Links {
		if slices.ContainsFunc(p.Frontends, func(id string) bool { return strings.HasPrefix(strings.ToLower(id), prefix) }) {
			n++
		}
	}
	return n
}
