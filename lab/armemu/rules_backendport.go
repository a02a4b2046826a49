// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	backendPortCode   = "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig"
	backendPortSource = "load balancer errors page; hashicorp/terraform#15923, Azure/azure-powershell#2042"
)

func backendPortRules() []Rule {
	return []Rule{
		{
			Name: "nic-backend-port-once", On: KindPut, Scopes: []Scope{ScopeNetworkInterface}, Code: backendPortCode, CodeCertainty: Observed, Certainty: Observed,
			Requires: "The pools of an IP configuration on load balancers of one type (public, internal) have no two rules without floating IP with the same backend port and protocol.",
			Source:   backendPortSource, check: checkMemberBackendPorts,
		},
		{
			Name: "scale-set-backend-port-once", On: KindPut, Scopes: []Scope{ScopeScaleSet, ScopeScaleSetVM},
			Code: "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndVmssIPConfig", CodeCertainty: Documented, Certainty: Documented,
			Requires: "The same of an IP configuration of a scale set.",
			Source:   "load balancer errors page", check: checkMemberBackendPorts,
		},
		{
			Name: "balancer-backend-port-once", On: KindPut, Scopes: loadBalancerScopes, Code: backendPortCode, CodeCertainty: Documented, Certainty: Documented,
			Requires: "A PUT of a load balancer gives no IP configuration in its pools two such rules.",
			Source:   "load balancer errors page", check: checkBalancerBackendPorts,
		},
	}
}

// backendPort is a port that a rule sends flows to.
type backendPort struct {
	protocol string
	port     int
}

// portRule is a rule without floating IP, for one of its pools.
type portRule struct {
	backendPort
	id, pool string
}

// portRules returns the rules without floating IP of a load balancer's pools, by lower-cased pool ID.
func portRules(id resourceID, root fields) map[string][]portRule {
	byPool := map[string][]portRule{}
	for _, r := range objectList(propertyFields(root), lbRules) {
		props := propertyFields(r)
		port, ok := intField(props, "backendPort")
		if !ok || props["enableFloatingIP"] == true {
			continue
		}
		for _, pool := range rulePools(props) {
			byPool[pool] = append(byPool[pool], portRule{
				backendPort{strings.ToLower(stringField(props, "protocol")), port}, id.String() + "/" + lbRules + "/" + stringField(r, "name"), pool,
			})
		}
	}
	return byPool
}

// findPortConflict returns two rules of different pools with the same backend port; within a pool another rule of the
// table applies.
func findPortConflict(config string, rules []portRule) string {
	slices.SortFunc(rules, func(a, b portRule) int { return cmp.Compare(a.id, b.id) })
	first := map[backendPort]portRule{}
	for _, r := range rules {
		other, found := first[r.backendPort]
		if !found {
			first[r.backendPort] = r
			continue
		}
		if other.id != r.id && other.pool != r.pool {
			return fmt.Sprintf("Load balancer rules %s and %s use the same backend port (%d) and protocol (%s), and must not be used with the same backend ip (%s).", other.id, r.id, r.port, r.protocol, config)
		}
	}
	return ""
}

func checkMemberBackendPorts(s *validationTarget) string {
	byBalancer := map[*aggregate]map[string][]portRule{}
	rules := map[string]map[bool][]portRule{} // by IP configuration, and whether internal
	for _, m := range s.memberships() {
		if byBalancer[m.loadBalancer] == nil {
			byBalancer[m.loadBalancer] = portRules(m.loadBalancer.id, m.loadBalancer.body)
		}
		if rules[m.config] == nil {
			rules[m.config] = map[bool][]portRule{}
		}
		kind := isInternal(m.loadBalancer.body)
		rules[m.config][kind] = append(rules[m.config][kind], byBalancer[m.loadBalancer][m.pool.key()]...)
	}
	for _, config := range slices.Sorted(maps.Keys(rules)) {
		for _, list := range rules[config] {
			if wrong := findPortConflict(config, list); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// checkBalancerBackendPorts considers one load balancer: an IP configuration is in pools of one of each type.
func checkBalancerBackendPorts(s *validationTarget) string {
	byPool := portRules(s.self, s.body)
	if len(byPool) < 2 {
		return ""
	}
	rules := map[string][]portRule{}
	for pool, list := range byPool {
		for _, config := range s.e.references().pool[pool] {
			rules[config] = append(rules[config], list...)
		}
	}
	for _, config := range slices.Sorted(maps.Keys(rules)) {
		if wrong := findPortConflict(config, rules[config]); wrong != "" {
			return wrong
		}
	}
	return ""
}
