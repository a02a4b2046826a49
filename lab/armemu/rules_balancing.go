// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"slices"
	"strings"
)

func balancingRules() []Rule {
	return []Rule{
		{
			Name: "rule-ports", On: KindPut, Scopes: loadBalancerScopes, Code: "PortValueIsOutOfRange", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The frontend port of a rule is 1 to 65534, its backend port 1 to 65535; both are 0 with protocol All.",
			Source:   recordedSource, check: rulePorts,
		},
		{
			Name: "rule-idle-timeout", On: KindPut, Scopes: loadBalancerScopes, Code: "RuleIdleTimeoutIsOutOfRange", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The idle timeout of a rule is 4 to 100 minutes.",
			Source:   "TCP reset and idle timeout page; code from " + recordedSource, check: ruleIdleTimeout,
		},
		{
			Name: "ha-ports-whole", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancingRuleHAPortsInvalid", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "Protocol All requires frontend and backend port 0.",
			Source:   "HA ports page", check: haPortsBothZero,
		},
		{
			Name: "ha-ports-internal", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancingRuleHAPortsNotAllowed", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A rule with protocol All belongs to a Standard load balancer and an internal frontend.",
			Source:   "HA ports page, limitations", check: haPortsInternal,
		},
		{
			Name: "rule-pools-agree", On: KindPut, Scopes: loadBalancerScopes,
			Code:          "LoadBalancingRuleBackendAdressPoolAndBackendAddressPoolsCannotBeSetAtTheSameTimeWithDifferentValue",
			CodeCertainty: Observed, Certainty: Observed,
			Requires: "If a rule has both `backendAddressPool` and `backendAddressPools`, they name the same.",
			Source:   "Azure/azure-sdk-for-java#31781", check: checkRulePools,
		},
		{
			Name: "frontend-port-once", On: KindPut, Scopes: loadBalancerScopes, Code: "RulesUseSameFrontendPortAndProtocol", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "No two rules, load balancing or inbound NAT, have the same frontend, port and protocol.",
			Source:   "multiple frontends page; no answer of the service found", check: frontendPortOnce,
		},
		{
			Name: "backend-port-once", On: KindPut, Scopes: loadBalancerScopes, Code: "RulesUseSameBackendPortProtocolAndPool", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No two rules without floating IP have the same pool, backend port and protocol.",
			Source:   "MicrosoftDocs/azure-docs#117762", check: backendPortOnce,
		},
		{
			Name: "backend-port-once-floating", On: KindPut, Scopes: loadBalancerScopes, Code: "RulesUseSameBackendPortProtocolAndPoolAndFrontendIPWithFloatingIPEnabled", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No two rules with floating IP have the same frontend, pool, backend port and protocol.",
			Source:   "kubernetes-sigs/cloud-provider-azure#521", check: backendPortOnceFloating,
		},
		{
			Name: "snat-disabled-beside-outbound-rule", On: KindPut, Scopes: loadBalancerScopes,
			Code:          "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
			CodeCertainty: Observed, Certainty: Observed,
			Requires: "A load balancing rule with a frontend that an outbound rule uses sets `disableOutboundSnat`.",
			Source:   "public test suites", check: snatDisabled,
		},
	}
}

func (v *validationTarget) eachRule(f func(id string, props fields) string) string {
	prefix := v.self.String() + "/" + lbRules + "/"
	for _, r := range objectList(propertyFields(v.body), lbRules) {
		if wrong := f(prefix+stringField(r, "name"), propertyFields(r)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func rulePorts(s *validationTarget) string {
	return s.eachRule(func(id string, props fields) string {
		if isAllProtocols(props) {
			return ""
		}
		wrong := checkPort(id, "FrontendPort", props, "frontendPort", 65534)
		if wrong == "" {
			wrong = checkPort(id, "BackendPort", props, "backendPort", 65535)
		}
		return wrong
	})
}

// checkPort returns Azure's message; word is Azure's name of the property.
func checkPort(id, word string, props fields, key string, limit int) string {
	if n, ok := intField(props, key); ok && (n < 1 || n > limit) {
		return fmt.Sprintf("Resource %s has invalid value of %s (%d). The value must be between 1 and %d.", id, word, n, limit)
	}
	return ""
}

func ruleIdleTimeout(s *validationTarget) string {
	return s.eachRule(func(id string, props fields) string {
		if n, ok := intField(props, "idleTimeoutInMinutes"); ok && (n < 4 || n > 100) {
			return fmt.Sprintf("Resource %s has invalid value of IdleTimeoutInMinutes (%d). The value must be between 4 and 100.", id, n)
		}
		return ""
	})
}

func isAllProtocols(props fields) bool {
	return strings.EqualFold(stringField(props, "protocol"), "All")
}

func haPortsBothZero(s *validationTarget) string {
	return s.eachRule(func(id string, props fields) string {
		front, _ := intField(props, "frontendPort")
		back, _ := intField(props, "backendPort")
		if isAllProtocols(props) && (front != 0 || back != 0) {
			return fmt.Sprintf("Load balancing rule %s has protocol All with frontend port %d and backend port %d: HA ports need both ports 0.", id, front, back)
		}
		return ""
	})
}

func haPortsInternal(s *validationTarget) string {
	internal := map[string]bool{}
	for id, props := range s.ipConfigs {
		internal[strings.ToLower(id)] = referenceID(props, "subnet") != ""
	}
	return s.eachRule(func(id string, props fields) string {
		if isAllProtocols(props) && (!internal[referenceID(props, "frontendIPConfiguration")] || isBasic(s.body)) {
			return fmt.Sprintf("Load balancing rule %s has protocol All: HA ports need a Standard load balancer and an internal frontend.", id)
		}
		return ""
	})
}

// findDuplicate never matches empty keys.
func findDuplicate(seen map[string]string, key, id string) (other string, twice bool) {
	if key == "" {
		return "", false
	}
	other, twice = seen[key]
	seen[key] = id
	return other, twice
}

func frontendPortOnce(s *validationTarget) string {
	seen := map[string]string{}
	check := func(id string, props fields) string {
		port, ok := intField(props, "frontendPort")
		front := referenceID(props, "frontendIPConfiguration")
		if !ok || front == "" {
			return ""
		}
		key := fmt.Sprint(front, " ", strings.ToLower(stringField(props, "protocol")), " ", port)
		if other, twice := findDuplicate(seen, key, id); twice {
			return fmt.Sprintf("Load balancer rules %s and %s use the same frontend IP configuration %s, frontend port %d and protocol %s.", other, id, front, port, stringField(props, "protocol"))
		}
		return ""
	}
	if wrong := s.eachRule(check); wrong != "" {
		return wrong
	}
	k := s.self.root.findChild(natRules)
	for _, r := range objectList(propertyFields(s.body), natRules) {
		if wrong := check(s.self.withChild(k, stringField(r, "name")).String(), propertyFields(r)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func rulePools(props fields) []string {
	ids := []string{referenceID(props, "backendAddressPool")}
	for _, p := range objectList(props, pools) {
		ids = append(ids, strings.ToLower(stringField(p, "id")))
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

func checkRulePools(s *validationTarget) string {
	return s.eachRule(func(id string, props fields) string {
		single, list := referenceID(props, "backendAddressPool"), objectList(props, pools)
		if single == "" || len(list) == 0 || len(list) == 1 && strings.EqualFold(stringField(list[0], "id"), single) {
			return ""
		}
		return fmt.Sprintf("Load balancing rule %s has BackendAddressPool and BackendAddressPools with different values.", id)
	})
}

func backendPortOnce(s *validationTarget) string {
	return s.checkBackendPort(false, "Load balancing rules %s and %s with floating IP disabled use the same protocol %s and backend port %d, and must not be used with the same backend address pool %s.")
}

func backendPortOnceFloating(s *validationTarget) string {
	return s.checkBackendPort(true, "Load balancing rules %s and %s with floating IP enabled use the same protocol %s and backend port %d and frontend IP, and must not be used with the same backend address pool %s.")
}

func (v *validationTarget) checkBackendPort(floating bool, message string) string {
	seen := map[string]string{}
	return v.eachRule(func(id string, props fields) string {
		port, ok := intField(props, "backendPort")
		if !ok || (props["enableFloatingIP"] == true) != floating {
			return ""
		}
		front := ""
		if floating {
			front = referenceID(props, "frontendIPConfiguration")
		}
		for _, pool := range rulePools(props) {
			key := fmt.Sprint(front, " ", pool, " ", strings.ToLower(stringField(props, "protocol")), " ", port)
			if other, twice := findDuplicate(seen, key, id); twice {
				return fmt.Sprintf(message, other, id, stringField(props, "protocol"), port, pool)
			}
		}
		return ""
	})
}

func snatDisabled(s *validationTarget) string {
	outbound := map[string]string{}
	for _, r := range objectList(propertyFields(s.body), outRules) {
		for _, f := range objectList(propertyFields(r), frontends) {
			outbound[strings.ToLower(stringField(f, "id"))] = stringField(r, "name")
		}
	}
	return s.eachRule(func(id string, props fields) string {
		by, shared := outbound[referenceID(props, "frontendIPConfiguration")]
		if shared && props["disableOutboundSnat"] != true {
			return fmt.Sprintf("Load balancing rule %s must disable SNAT since same frontend IP configuration is referenced by outbound rule %s.", id, by)
		}
		return ""
	})
}
