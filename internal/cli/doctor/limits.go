// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

const limitsPage = "docs/runbooks/WeirLimitNear.md"

// checkLimits compares what the load balancers and the security group use. The rule limit of azure.json applies to the
// load balancers that Weir manages.
func (a *Azure) checkLimits() []Check {
	if a.loadBalancers == nil {
		return singleResult(Unknown, "the load balancers were not read", "")
	}
	state := plan.LimitState{Interfaces: a.usesInterfaces(), MaxLinks: a.Config.MaxPrivateLinks()}
	managed := state
	managed.MaxRules = a.Config.MaxRules()
	for _, b := range a.loadBalancers {
		if _, ok := service.ConfigurationOf(b.ID.Name, a.Settings.Configurations); ok {
			managed.LoadBalancers = append(managed.LoadBalancers, b)
		} else {
			state.LoadBalancers = append(state.LoadBalancers, b)
		}
	}
	if a.group.Etag != "" {
		state.Groups = []lb.SecurityGroup{a.group}
	}
	return compareUsages(slices.Concat(plan.ListLimitUsages(managed), plan.ListLimitUsages(state)), limitsPage)
}

const usagesAction = app.UsagesAction

// checkRegionLimits compares the quotas of the subscription in the region of azure.json, or in that of a load balancer.
func (a *Azure) checkRegionLimits(ctx context.Context) []Check {
	location := a.Config.Location
	if location == "" && len(a.loadBalancers) > 0 {
		location = a.loadBalancers[0].Location
	}
	if location == "" {
		return singleResult(OK, "azure.json names no location, and there is no load balancer: the quotas of the region were not read", "")
	}
	reported, err := a.ListRegionUsages(ctx, location)
	if err != nil {
		if ctx.Err() != nil {
			return noResponse(ctx, err)
		}
		return singleResult(Unknown, "how many load balancers and public IPs the subscription may still have in "+location+": "+err.Error(),
			"permit "+usagesAction+" on the subscription; "+limitsPage)
	}
	return compareUsages(plan.ListRegionUsages(location, reported), limitsPage)
}

// compareUsages fails if a limit is reached and warns if one is near. The fullest is first.
func compareUsages(usages []plan.LimitUsage, do string) []Check {
	result, near := OK, []string{}
	share := func(u plan.LimitUsage) int { return u.Used * 1000 / max(u.Max, 1) }
	slices.SortStableFunc(usages, func(a, b plan.LimitUsage) int { return cmp.Compare(share(b), share(a)) })
	for _, u := range usages {
		if !u.IsNear() {
			continue
		}
		near = append(near, fmt.Sprintf("%s has %d of %d %s", u.Resource, u.Used, u.Max, u.Name))
		if result != Fail {
			result = Warn
		}
		if u.IsReached() {
			result = Fail
		}
	}
	if result == OK {
		return singleResult(OK, humanize.FormatCount(len(usages), "limit")+", of which less than 80 % is used", "")
	}
	return singleResult(result, humanize.FormatList(near, 5), do)
}
