// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/limit"
)

// ListUsages returns how much of Azure's limits the load balancers, their Private Link Services and the security group use,
// as last observed.
func (b *LoadBalancers) ListUsages() []limit.Usage {
	b.cache.mu.Lock()
	var observed []lb.LoadBalancer
	for _, name := range slices.Sorted(maps.Keys(b.cache.observed)) {
		observed = append(observed, b.cache.observed[name])
	}
	members := maps.Clone(b.cache.memberUsages)
	b.cache.mu.Unlock()
	s := limit.State{MaxRules: b.cfg.MaxRules, MaxLinks: b.cfg.MaxPrivateLinks}
	if b.links != nil {
		s.Links = b.links.ListObserved()
	}
	byInterfaces := s
	byInterfaces.Interfaces = true
	for _, o := range observed {
		if b.usesInterfaces(o.ID.Name) {
			byInterfaces.LoadBalancers = append(byInterfaces.LoadBalancers, o)
		} else {
			s.LoadBalancers = append(s.LoadBalancers, o)
		}
	}
	if b.group != nil {
		s.Groups = b.group.ListObserved()
	}
	withMembers := func(s limit.State) []limit.Usage { // the cached load balancers have no members
		all := limit.ListUsages(s)
		for i, u := range all {
			for _, m := range members[strings.ToLower(u.Resource)] {
				if m.Name == u.Name && (u.CountsMembers() || s.Interfaces) {
					all[i] = m
				}
			}
		}
		return all
	}
	return slices.Concat(withMembers(byInterfaces), withMembers(s))
}
