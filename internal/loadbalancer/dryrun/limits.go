// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"

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
	old := map[key]int{}
	for _, u := range plan.ListLimitUsages(before) {
		old[key{u.Resource, u.Name}] = u.Used
	}
	var usages []plan.LimitUsage
	for _, u := range plan.ListLimitUsages(after) {
		if u.Was = old[key{u.Resource, u.Name}]; u.Was+u.Used > 0 {
			usages = append(usages, u)
		}
	}
	return usages
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

// ListCreatedRegions returns the regions in which the plan creates load balancers or public IPs.
func (changes Changes) ListCreatedRegions() []string {
	return slices.Sorted(maps.Keys(changes.countCreated()))
}

// countCreated counts what the plan creates, by region and quota.
func (changes Changes) countCreated() map[string]map[string]int {
	created := map[string]map[string]int{}
	add := func(location string, sku lb.SKU, general, standard string) {
		region := plan.NormalizeLocation(location)
		if created[region] == nil {
			created[region] = map[string]int{}
		}
		created[region][general]++
		if sku == lb.Standard {
			created[region][standard]++
		}
	}
	for _, c := range changes.LoadBalancers {
		if c.Before.Etag == "" && c.After.Etag != "" {
			add(c.After.Location, c.After.SKU, plan.QuotaLoadBalancers, plan.QuotaStandardLoadBalancers)
		}
	}
	for _, c := range changes.PublicIPs {
		if c.Before.Etag != "" || c.After.Etag == "" {
			continue
		}
		standard := plan.QuotaStandardIPv4
		if c.After.Family == lb.IPv6 {
			standard = plan.QuotaStandardIPv6
		}
		add(c.After.Location, c.After.SKU, plan.QuotaPublicIPs, standard)
	}
	return created
}

// RegionLimitsOf returns the quotas of a region that the plan uses more of, if they would be near or exceeded. What the plan
// deletes still counts: Weir creates before it deletes.
func RegionLimitsOf(d Changes, region string, reported []plan.RegionUsage) []plan.LimitUsage {
	created := d.countCreated()[region]
	var usages []plan.LimitUsage
	for _, u := range plan.ListRegionUsages(region, reported) {
		if u.Used += created[u.Name]; u.IsChanged() && u.IsNear() {
			usages = append(usages, u)
		}
	}
	return usages
}
