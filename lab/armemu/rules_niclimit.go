// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxRulesPerConfig limits load balancing and inbound NAT rules together.
const maxRulesPerConfig = 299

const (
	ruleCountCode   = "LoadBalancerRuleCountLimitReachedForNic"
	ruleCountSource = "load balancer errors page; MicrosoftDocs/azure-docs#47423"
)

func nicLimitRules() []Rule {
	return []Rule{
		{
			Name: "nic-rule-limit", On: KindPut, Scopes: memberScopes, Code: ruleCountCode, CodeCertainty: Documented, Certainty: Documented,
			Requires: fmt.Sprintf("The pools of an IP configuration have at most %d load balancing and inbound NAT rules, those of its public and its internal load balancer together.", maxRulesPerConfig),
			Source:   ruleCountSource, check: checkRuleLimit,
		},
		{
			Name: "balancer-nic-rule-limit", On: KindPut, Scopes: loadBalancerScopes, Code: ruleCountCode, CodeCertainty: Documented, Certainty: Observed,
			Requires: "A PUT of a load balancer gives no IP configuration in its pools more rules than that.",
			Source:   ruleCountSource, check: checkMemberRuleLimit,
		},
	}
}

func countPoolRules(root fields) map[string]int {
	n := map[string]int{}
	for _, collection := range []string{lbRules, natRules} {
		for _, rule := range objectList(propertyFields(root), collection) {
			for id := range referencedIDs(rule) {
				if strings.Contains(id, "/"+strings.ToLower(pools)+"/") {
					n[id]++
				}
			}
		}
	}
	return n
}

func checkRuleLimit(s *validationTarget) string {
	byBalancer := map[*aggregate]map[string]int{}
	sums, seen := map[string]int{}, map[[2]string]bool{}
	for config, props := range s.ipConfigs {
		sums[config] += len(objectList(props, "loadBalancerInboundNatRules"))
	}
	for _, m := range s.memberships() {
		if byBalancer[m.loadBalancer] == nil {
			byBalancer[m.loadBalancer] = countPoolRules(m.loadBalancer.body)
		}
		if at := [2]string{m.config, m.pool.key()}; !seen[at] {
			seen[at] = true
			sums[m.config] += byBalancer[m.loadBalancer][m.pool.key()]
		}
	}
	return ruleLimitExceeded(sums)
}

func ruleLimitExceeded(sums map[string]int) string {
	for _, config := range slices.Sorted(maps.Keys(sums)) {
		if n := sums[config]; n > maxRulesPerConfig {
			return fmt.Sprintf("The IP configuration %s has %d load balancing rules and inbound NAT rules; the limit is %d.", config, n, maxRulesPerConfig)
		}
	}
	return ""
}

func checkMemberRuleLimit(s *validationTarget) string {
	list := s.e.otherLoadBalancers(s.self)
	total := len(objectList(propertyFields(s.body), lbRules)) + len(objectList(propertyFields(s.body), natRules))
	for _, agg := range list {
		total += len(objectList(propertyFields(agg.body), lbRules)) + len(objectList(propertyFields(agg.body), natRules))
	}
	if total <= maxRulesPerConfig {
		return ""
	}
	sums := map[string]int{}
	for pool, n := range countPoolRules(s.body) {
		for _, config := range s.e.references().pool[pool] {
			sums[config] += n
		}
	}
	for _, agg := range list {
		for pool, n := range countPoolRules(agg.body) {
			for _, config := range s.e.references().pool[pool] {
				if _, changed := sums[config]; changed {
					sums[config] += n
				}
			}
		}
	}
	return ruleLimitExceeded(sums)
}

func (e *Emulator) otherLoadBalancers(than resourceID) []*aggregate {
	var list []*aggregate
	for _, agg := range e.aggregates {
		if agg.id.root == loadBalancerKind && sameName(agg.id.subscription, than.subscription) && agg.id.rootKey() != than.rootKey() {
			list = append(list, agg)
		}
	}
	return list
}
