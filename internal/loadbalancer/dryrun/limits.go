// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/machinerules"
	"weir.dev/weir/internal/service/nsg"
)

// Limit is how much of an Azure limit a resource uses before and after the plan.
type Limit struct {
	// Resource is the name of the load balancer or security group.
	Resource string `json:"resource"`
	// Name is what Azure counts.
	Name string `json:"name"`
	Was  int    `json:"was"`
	Used int    `json:"used"`
	Max  int    `json:"max"`
}

// Names of limits.
const (
	LimitRules                = "rules"
	LimitFrontends            = "frontends"
	LimitMachineRules         = "rules of a machine"
	LimitAvailabilitySets     = "availability sets of a pool"
	LimitLinks                = "Private Link Services"
	LimitSecurityRules        = "security rules"
	LimitSecuritySources      = "sources"
	LimitSecurityDestinations = "destinations"
)

// IsNear reports whether more than nine tenths are used, as the alert WeirRulesNearLimit does.
func (l Limit) IsNear() bool { return l.Used*10 > l.Max*9 }

// Changes reports whether the plan changes the use.
func (l Limit) Changes() bool { return l.Was != l.Used }

// LimitsOf returns the limits of the load balancers and security groups of a plan, in their order.
// maxRules and maxLinks are how many rules and Private Link Services a load balancer may have. Rules of
// machines and availability sets count where interfaces is true.
func LimitsOf(d Changes, maxRules, maxLinks int, interfaces bool) []Limit {
	var limits []Limit
	var was, is machinerules.Counter
	for _, c := range d.LoadBalancers {
		if c.After.Etag == "" && c.Before.Etag == "" {
			continue
		}
		was.RecordState(c.Before)
		is.RecordState(c.After)
	}
	before, after := was.MaxUsed(), is.MaxUsed()
	for _, c := range d.LoadBalancers {
		if c.After.Etag == "" {
			continue
		}
		name := c.After.ID.Name
		limits = append(limits,
			Limit{name, LimitRules, len(c.Before.Rules), len(c.After.Rules), maxRules},
			Limit{name, LimitFrontends, len(c.Before.Frontends), len(c.After.Frontends), lb.MaxFrontends})
		// Used has one entry for a public load balancer and its internal twin.
		if used, isCounted := after[strings.ToLower(name)]; interfaces && isCounted {
			limits = append(limits, Limit{name, LimitMachineRules, before[strings.ToLower(name)], used, lb.MaxMachineRules})
		}
		if sets := countSingleMachines(c.After); interfaces && sets > 0 {
			limits = append(limits, Limit{name, LimitAvailabilitySets, countSingleMachines(c.Before), sets, lb.MaxAvailabilitySets})
		}
		if was, is := countLinks(d.Links, c.After.ID); was+is > 0 {
			limits = append(limits, Limit{name, LimitLinks, was, is, maxLinks})
		}
	}
	for _, c := range d.Groups {
		if c.After.Etag == "" {
			continue
		}
		name, had, has := c.After.ID.Name, nsg.UseOf(c.Before.Rules), nsg.UseOf(c.After.Rules)
		limits = append(limits,
			Limit{name, LimitSecurityRules, had.Rules, has.Rules, lb.MaxSecurityRules},
			Limit{name, LimitSecuritySources, had.Sources, has.Sources, lb.MaxSecurityPrefixes},
			Limit{name, LimitSecurityDestinations, had.Destinations, has.Destinations, lb.MaxSecurityPrefixes})
	}
	return limits
}

// countSingleMachines returns the most machines of a pool of network interfaces that are in no scale set. They are of
// as many availability sets at most.
func countSingleMachines(b lb.LoadBalancer) int {
	most := 0
	for _, p := range b.Pools {
		machines := map[string]bool{}
		for _, a := range p.Addresses {
			if m := strings.ToLower(a.Machine); m != "" && !strings.Contains(m, "/virtualmachinescalesets/") {
				machines[m] = true
			}
		}
		most = max(most, len(machines))
	}
	return most
}

// countLinks counts the Private Link Services of a load balancer before and after.
func countLinks(links []ResourceChange[lb.PrivateLinkService], on lb.LoadBalancerID) (was, is int) {
	prefix := strings.ToLower(on.String()) + "/"
	isOn := func(p lb.PrivateLinkService) bool {
		return p.Etag != "" && slices.ContainsFunc(p.Frontends, func(id string) bool { return strings.HasPrefix(strings.ToLower(id), prefix) })
	}
	for _, c := range links {
		if isOn(c.Before) {
			was++
		}
		if isOn(c.After) {
			is++
		}
	}
	return was, is
}
