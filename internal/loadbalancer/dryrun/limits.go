// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// LimitsOf returns how much of Azure's limits the load balancers and security groups of a plan use, in their order.
// maxRules and maxLinks are how many rules and Private Link Services a load balancer may have. Rules of
// machines and availability sets count where interfaces is true.
func LimitsOf(d Changes, maxRules, maxLinks int, interfaces bool) []plan.LimitUsage {
	before := plan.LimitState{Interfaces: interfaces, MaxRules: maxRules, MaxLinks: maxLinks}
	after := before
	before.LoadBalancers, after.LoadBalancers = split(d.LoadBalancers, func(b lb.LoadBalancer) bool { return b.Etag != "" })
	before.Links, after.Links = split(d.Links, func(p lb.PrivateLinkService) bool { return p.Etag != "" })
	before.Groups, after.Groups = split(d.Groups, func(g lb.SecurityGroup) bool { return g.Etag != "" })
	type key struct{ resource, name string }
	was := map[key]int{}
	for _, u := range plan.ListLimitUsages(before) {
		was[key{u.Resource, u.Name}] = u.Used
	}
	var all []plan.LimitUsage
	for _, u := range plan.ListLimitUsages(after) {
		if u.Was = was[key{u.Resource, u.Name}]; u.Was+u.Used > 0 {
			all = append(all, u)
		}
	}
	return all
}

// split returns the resources that exist before and after.
func split[T any](changes []ResourceChange[T], exists func(T) bool) (before, after []T) {
	for _, c := range changes {
		if exists(c.Before) {
			before = append(before, c.Before)
		}
		if exists(c.After) {
			after = append(after, c.After)
		}
	}
	return before, after
}
