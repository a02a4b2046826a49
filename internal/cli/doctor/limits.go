// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/internal/azure/usages"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/limit"
	"weir.dev/weir/internal/service"
)

const limitsPage = "docs/runbooks/WeirLimitNear.md"

// checkLimits compares what the load balancers and the security group use. The rule limit of azure.json applies to the
// load balancers that Weir manages.
func (a *Azure) checkLimits() []Check {
	if a.loadBalancers == nil {
		return singleResult(Unknown, "the load balancers were not read", "")
	}
	state := limit.State{Interfaces: a.usesInterfaces(), MaxLinks: a.Config.MaxPrivateLinks()}
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
	return compareUsages(slices.Concat(limit.ListUsages(managed), limit.ListUsages(state)), limitsPage)
}

const usagesAction = "Microsoft.Network/locations/usages/read"

// checkRegionLimits compares the quotas of the subscription in the region of azure.json.
func (a *Azure) checkRegionLimits(ctx context.Context) []Check {
	reported, err := usages.ListUsages(ctx, a.Client, a.Config.SubscriptionID, a.Config.Location)
	if err != nil {
		if ctx.Err() != nil {
			return noResponse(ctx, err)
		}
		return singleResult(Unknown, "how many load balancers and public IPs the subscription may still have in "+a.Config.Location+": "+err.Error(),
			"permit "+usagesAction+" on the subscription; "+limitsPage)
	}
	all := make([]limit.RegionUsage, len(reported))
	for i, u := range reported {
		all[i] = limit.RegionUsage{Name: u.Name, Used: u.Used, Max: u.Limit}
	}
	return compareUsages(limit.ListRegionUsages(a.Config.Location, all), limitsPage)
}

// compareUsages fails if a limit is reached and warns if one is near. The fullest is first.
func compareUsages(all []limit.Usage, do string) []Check {
	result, near := OK, []string{}
	share := func(u limit.Usage) int { return u.Used * 1000 / max(u.Max, 1) }
	slices.SortStableFunc(all, func(a, b limit.Usage) int { return cmp.Compare(share(b), share(a)) })
	for _, u := range all {
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
		return singleResult(OK, humanize.FormatCount(len(all), "limit")+", of which less than 80 % is used", "")
	}
	return singleResult(result, humanize.FormatList(near, 5), do)
}
