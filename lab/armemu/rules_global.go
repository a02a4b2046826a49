// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

const globalPage = "global load balancer overview"

func globalRules() []Rule {
	return []Rule{
		{
			Name: "tier-fixed", On: KindPut, Scopes: []Scope{ScopeLoadBalancer, ScopePublicIP}, Code: "SkuCannotBeChangedOnUpdate", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "The tier (Regional, Global) of an existing load balancer or public IP does not change.",
			Source:   "by analogy with the name of the SKU", check: checkTierChange,
		},
		{
			Name: "global-public-ip", On: KindPut, Scopes: loadBalancerScopes, Code: "PublicIPAndLBSkuTierDoNotMatch", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The frontends of a Global load balancer are public with addresses of tier Global; no other load balancer has one of these.",
			Source:   globalPage, check: checkGlobalFrontends,
		},
		{
			Name: "global-no-outbound", On: KindPut, Scopes: loadBalancerScopes, Code: "OutboundRuleNotSupportedForGlobalTier", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A Global load balancer has no outbound rules.",
			Source:   globalPage + ", limitations", check: checkGlobalOutbound,
		},
		{
			Name: "global-members", On: KindPut, Scopes: poolScopes, Code: "GlobalLoadBalancerBackendAddressInvalid", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A pool of a Global load balancer has public frontends of Regional load balancers, and nothing else.",
			Source:   globalPage, check: checkGlobalMembers,
		},
		{
			Name: "global-no-interfaces", On: KindPut, Scopes: memberScopes, Code: "GlobalLoadBalancerBackendAddressInvalid", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A NIC is in no pool of a Global load balancer.",
			Source:   globalPage, check: checkGlobalInterfaces,
		},
		{
			Name: "frontends-of-global-remain", On: KindPut, Scopes: loadBalancerScopes, Code: globalUseCode, CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "A PUT leaves out no frontend that is in a pool of a Global load balancer.",
			Source:   "by analogy with the deletion", check: checkGlobalUse,
		},
		{
			Name: "not-behind-global", On: KindDelete, Scopes: loadBalancerScopes, Code: globalUseCode, CodeCertainty: Observed, Certainty: Observed,
			Requires: "No frontend of the load balancer is in a pool of a Global load balancer.",
			Source:   "Azure/azure-rest-api-specs#16327", check: checkGlobalUse,
		},
	}
}

const globalUseCode = "NotAllowedToDeleteLoadBalancerWithFrontendIpConfigurationInUseByGlobalLB"

func isGlobal(root fields) bool {
	return sameName(stringField(objectField(root, "sku"), "tier"), "Global")
}

func checkTierChange(s *validationTarget) string {
	if s.before != nil && isGlobal(s.before) != isGlobal(s.body) {
		return fmt.Sprintf("The tier of the SKU of resource %s cannot be changed.", s.self)
	}
	return ""
}

func checkGlobalFrontends(s *validationTarget) string {
	global := isGlobal(s.body)
	for id, props := range s.ipConfigs {
		ip := s.e.aggregates[referenceID(props, "publicIPAddress")]
		switch {
		case global && referenceID(props, "subnet") != "":
			return fmt.Sprintf("Global tier load balancer %s cannot have the internal frontend IP configuration %s.", s.self, id)
		case ip != nil && isGlobal(ip.body) != global:
			return fmt.Sprintf("Load balancer %s and public IP address %s must have the same tier.", s.self, ip.id)
		}
	}
	return ""
}

func checkGlobalOutbound(s *validationTarget) string {
	if rules := objectList(propertyFields(s.body), outRules); isGlobal(s.body) && len(rules) > 0 {
		return fmt.Sprintf("Outbound rule %s is not supported on Global tier load balancer %s.", stringField(rules[0], "name"), s.self)
	}
	return ""
}

func memberFrontend(address fields) string {
	return stringField(objectField(propertyFields(address), "loadBalancerFrontendIPConfiguration"), "id")
}

func checkGlobalMembers(s *validationTarget) string {
	if !isGlobal(s.root) {
		return ""
	}
	for _, a := range s.addresses() {
		id, _, _ := strings.Cut(strings.ToLower(memberFrontend(a)), "/"+strings.ToLower(frontends)+"/")
		balancer := s.e.aggregates[id]
		if balancer == nil || isGlobal(balancer.body) || isInternal(balancer.body) {
			return fmt.Sprintf("Backend address %s of pool %s of a Global tier load balancer must be a public frontend of a Regional tier load balancer.", stringField(a, "name"), s.self)
		}
	}
	return ""
}

func checkGlobalInterfaces(s *validationTarget) string {
	for _, m := range s.memberships() {
		if isGlobal(m.loadBalancer.body) {
			return fmt.Sprintf("IP configuration %s cannot join backend address pool %s of a Global tier load balancer.", m.config, m.pool)
		}
	}
	return ""
}

// checkGlobalUse checks the frontends that the write removes.
func checkGlobalUse(s *validationTarget) string {
	return s.eachRemovedChild(frontendKind, func(s *validationTarget, frontend resourceID) string {
		for _, other := range s.e.otherLoadBalancers(s.self) {
			if !isGlobal(other.body) {
				continue
			}
			for _, pool := range objectList(propertyFields(other.body), pools) {
				for _, a := range objectList(propertyFields(pool), addresses) {
					if strings.EqualFold(memberFrontend(a), frontend.String()) {
						return fmt.Sprintf("It is not allowed to delete load balancer %s that has a load balancer frontend IP configuration %s referenced by global load balancer's pool %s. Please remove from global load balancing configuration first.",
							s.self, frontend, other.id.withChild(poolKind, stringField(pool, "name")))
					}
				}
			}
		}
		return ""
	})
}
