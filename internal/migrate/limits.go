// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Limits of a Standard load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer
const (
	mostFrontends = 600
	mostRules     = 1500
	// mostMachineRules is per network interface, over all load balancers.
	mostMachineRules = lb.MaxMachineRules
)

// Usage is the usage of a subscription's limit in a region.
type Usage struct {
	Subscription string
	// Name is Azure's name, such as StandardSkuLoadBalancers.
	Name        string
	Used, Limit int
}

func (p *preflight) limits(j Journal, services []Service) {
	rules, own, onNodes := map[lb.LoadBalancerKey]int{}, map[string]int{}, map[string]int{}
	for _, s := range services {
		if s.Idle {
			continue
		}
		rules[s.Balancer.Key()] += s.Rules
		onNodes[nodesOf(s.Balancer)] += s.Rules
		own[nodesOf(s.Balancer)] += s.OwnRules
	}
	reported := map[string]bool{}
	for _, b := range j.Balancers {
		has, _ := p.seen.balancer(b.ID)
		frontends := len(b.Addresses)
		if has.SKU != lb.Basic {
			frontends = len(has.Frontends) + len(b.missing(has, p.seen))
		}
		if frontends > mostFrontends {
			p.stop(LimitReached, "load balancer %s would have %d frontends, and a Standard one takes %d: move Services to another load balancer, or have them share addresses", b.ID.Name, frontends, mostFrontends)
		}
		if n := rules[b.ID.Key()]; n > mostRules {
			p.stop(LimitReached, "load balancer %s would have %d rules, and a Standard one takes %d: move Services to another load balancer", b.ID.Name, n, mostRules)
		}
		nodes := nodesOf(b.ID)
		if reported[nodes] {
			continue
		}
		reported[nodes] = true
		const way = "have fewer ports, or several load balancers with nodes of their own (multipleStandardLoadBalancerConfigurations)"
		switch n := onNodes[nodes]; {
		case n-own[nodes] > mostMachineRules:
			p.stop(LimitReached, "each machine behind load balancer %s would have %d rules, of the external and the internal one, and Azure takes %d: %s", nodes, n-own[nodes], mostMachineRules, way)
		case n > mostMachineRules:
			p.note(LimitReached, "machines behind load balancer %s may have up to %d rules, of the external and the internal one, and Azure takes %d: those of pools of their own count where these have endpoints; %s", nodes, n, mostMachineRules, way)
		}
	}
}

// nodesOf returns the name shared by an external load balancer and its internal one.
func nodesOf(id lb.LoadBalancerID) string {
	return strings.TrimSuffix(strings.ToLower(id.Name), "-internal")
}

func (p *preflight) usages(j Journal) {
	need := p.needs(j)
	for _, u := range p.seen.Usages {
		n := need[strings.ToLower(u.Subscription+"/"+u.Name)]
		if n == 0 || u.Limit < 0 || u.Used+n <= u.Limit {
			continue
		}
		say := p.stop
		if strings.EqualFold(u.Name, staticPublicIPs) {
			say = p.note // if it counts, Azure rejects the write before a machine leaves
		}
		say(LimitReached, "the subscription has %d of %d %s in use in the region, and %d more are needed: have the limit raised (Azure portal, Quotas), or delete some that nobody needs", u.Used, u.Limit, u.Name, n)
	}
}

const staticPublicIPs = "StaticPublicIPAddresses"

// needs is keyed by "subscription/limit" in lower case. Only deleted resources add to the number of
// load balancers.
func (p *preflight) needs(j Journal) map[string]int {
	need := map[string]int{}
	count := func(subscription, name string) { need[strings.ToLower(subscription+"/"+name)]++ }
	for _, b := range j.Balancers {
		has, exists := p.seen.balancer(b.ID)
		if !exists {
			count(b.ID.SubscriptionID, "LoadBalancers")
		}
		if !exists || has.SKU == lb.Basic {
			count(b.ID.SubscriptionID, "StandardSkuLoadBalancers")
		}
	}
	for id := range j.publicIPs() {
		ip, found := p.seen.publicIP(id)
		if !found || ip.SKU != lb.Basic {
			continue
		}
		count(ip.ID.SubscriptionID, "StandardSkuPublicIpAddresses") // the former name
		count(ip.ID.SubscriptionID, fmt.Sprintf("%sStandardSkuPublicIpAddresses", ip.Family))
		if !ip.Static {
			count(ip.ID.SubscriptionID, staticPublicIPs)
		}
	}
	return need
}
