// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/loadbalancer/plan"
)

// usageList are the usages of several limits.
type usageList = []plan.LimitUsage

// usageState is what uses the limits, other than load balancers.
type usageState = plan.LimitState

// ListUsages returns how much of Azure's limits the load balancers, as last observed, and the rest of the state use. isNIC
// reports whether nodes are members of a load balancer's pools by their network interfaces.
func (c *usageCounter) ListUsages(s usageState, isNIC func(name string) bool) usageList {
	c.mu.Lock()
	balancers, members := maps.Clone(c.balancers), maps.Clone(c.members)
	c.mu.Unlock()
	byInterfaces := usageState{Interfaces: true, Links: s.Links, MaxRules: s.MaxRules, MaxLinks: s.MaxLinks}
	for _, name := range slices.Sorted(maps.Keys(balancers)) {
		if isNIC(name) {
			byInterfaces.LoadBalancers = append(byInterfaces.LoadBalancers, balancers[name])
		} else {
			s.LoadBalancers = append(s.LoadBalancers, balancers[name])
		}
	}
	withMembers := func(s usageState) usageList {
		usages := plan.ListLimitUsages(s)
		for i, u := range usages {
			for _, m := range members[strings.ToLower(u.Resource)] {
				if m.Name == u.Name && (u.CountsMembers() || s.Interfaces) {
					usages[i] = m
				}
			}
		}
		return usages
	}
	return slices.Concat(withMembers(byInterfaces), withMembers(s))
}

// ListRegions returns the regions of the load balancers, as last observed, and that of new ones.
func (b *LoadBalancers) ListRegions() []string {
	return b.cache.machines.listRegions(b.cfg.Location)
}

func (c *usageCounter) listRegions(ofNew string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	regions := map[string]bool{plan.NormalizeLocation(ofNew): true}
	for _, balancer := range c.balancers {
		regions[plan.NormalizeLocation(balancer.Location)] = true
	}
	delete(regions, "")
	return slices.Sorted(maps.Keys(regions))
}
