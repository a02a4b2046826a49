// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Limits of a Standard load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer
const (
	maxFrontends = 600
	maxRules     = 1500
	// maxMachineRules is per network interface, over all load balancers.
	maxMachineRules = lb.MaxMachineRules
)

// Usage is the usage of a subscription's limit in a region.
type Usage struct {
	Subscription string
	// Name is Azure's name, such as StandardSkuLoadBalancers.
	Name        string
	Used, Limit int
}

func (p *preflightChecks) checkLimits(j Journal, services []Service) {
	rules, own, onNodes := map[lb.LoadBalancerKey]int{}, map[string]int{}, map[string]int{}
	for _, s := range services {
		if s.Skip {
			continue
		}
		rules[s.LoadBalancer.Key()] += s.Rules
		onNodes[nodeGroupName(s.LoadBalancer)] += s.Rules
		own[nodeGroupName(s.LoadBalancer)] += s.DedicatedRules
	}
	reported := map[string]bool{}
	for _, b := range j.LoadBalancers {
		balancer, _ := p.snapshot.findLoadBalancer(b.ID)
		frontends := len(b.Addresses)
		if balancer.SKU != lb.Basic {
			frontends = len(balancer.Frontends) + len(b.missingFrontends(balancer, p.snapshot))
		}
		if frontends > maxFrontends {
			p.addBlocker(ReasonLimitReached, "load balancer %s would have %d frontends, and a Standard one has at most %d: move Services to another load balancer, or have them share addresses", b.ID.Name, frontends, maxFrontends)
		}
		if n := rules[b.ID.Key()]; n > maxRules {
			p.addBlocker(ReasonLimitReached, "load balancer %s would have %d rules, and a Standard one has at most %d: move Services to another load balancer", b.ID.Name, n, maxRules)
		}
		nodes := nodeGroupName(b.ID)
		if reported[nodes] {
			continue
		}
		reported[nodes] = true
		const way = "have fewer ports, or several load balancers with nodes of their own (multipleStandardLoadBalancerConfigurations)"
		switch n := onNodes[nodes]; {
		case n-own[nodes] > maxMachineRules:
			p.addBlocker(ReasonLimitReached, "each machine behind load balancer %s would have %d rules, of the external and the internal one, and Azure allows %d: %s", nodes, n-own[nodes], maxMachineRules, way)
		case n > maxMachineRules:
			p.addWarning(ReasonLimitReached, "machines behind load balancer %s may have up to %d rules, of the external and the internal one, and Azure allows %d: those of pools of their own count where these have endpoints; %s", nodes, n, maxMachineRules, way)
		}
	}
}

// nodeGroupName returns the name shared by an external load balancer and its internal one.
func nodeGroupName(id lb.LoadBalancerID) string {
	return strings.TrimSuffix(strings.ToLower(id.Name), "-internal")
}

func (p *preflightChecks) checkUsages(j Journal) {
	need := p.requiredQuota(j)
	for _, u := range p.snapshot.Usages {
		n := need[strings.ToLower(u.Subscription+"/"+u.Name)]
		if n == 0 || u.Limit < 0 || u.Used+n <= u.Limit {
			continue
		}
		add := p.addBlocker
		if strings.EqualFold(u.Name, staticPublicIPLimit) {
			add = p.addWarning // if it counts, Azure rejects the write before a machine leaves
		}
		add(ReasonLimitReached, "the subscription has %d of %d %s in use in the region, and %d more are needed: have the limit raised (Azure portal, Quotas), or delete unused ones", u.Used, u.Limit, u.Name, n)
	}
}

const staticPublicIPLimit = "StaticPublicIPAddresses"

// requiredQuota is keyed by "subscription/limit" in lower case. Only deleted resources add to the number of
// load balancers.
func (p *preflightChecks) requiredQuota(j Journal) map[string]int {
	need := map[string]int{}
	count := func(subscription, name string) { need[strings.ToLower(subscription+"/"+name)]++ }
	for _, b := range j.LoadBalancers {
		balancer, exists := p.snapshot.findLoadBalancer(b.ID)
		if !exists {
			count(b.ID.SubscriptionID, "LoadBalancers")
		}
		if !exists || balancer.SKU == lb.Basic {
			count(b.ID.SubscriptionID, "StandardSkuLoadBalancers")
		}
	}
	for id := range j.publicIPIDs() {
		ip, found := p.snapshot.findPublicIP(id)
		if !found || ip.SKU != lb.Basic {
			continue
		}
		count(ip.ID.SubscriptionID, "StandardSkuPublicIpAddresses") // the former name
		count(ip.ID.SubscriptionID, fmt.Sprintf("%sStandardSkuPublicIpAddresses", ip.Family))
		if !ip.Static {
			count(ip.ID.SubscriptionID, staticPublicIPLimit)
		}
	}
	return need
}
