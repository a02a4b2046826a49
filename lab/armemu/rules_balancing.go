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
			Name: "rule-ports", On: KindPut, Scopes: onlyLoadBalancers, Code: "PortValueIsOutOfRange", CodeTag: Observed, Tag: Observed,
			Requires: "The frontend port of a rule is 1 to 65534, its backend port 1 to 65535; both are 0 with protocol All.",
			Source:   recorded, check: rulePorts,
		},
		{
			Name: "rule-idle-timeout", On: KindPut, Scopes: onlyLoadBalancers, Code: "RuleIdleTimeoutIsOutOfRange", CodeTag: Observed, Tag: Documented,
			Requires: "The idle timeout of a rule is 4 to 100 minutes.",
			Source:   "TCP reset and idle timeout page; code from " + recorded, check: ruleIdleTimeout,
		},
		{
			Name: "ha-ports-whole", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRuleHAPortsInvalid", CodeTag: Assumed, Tag: Documented,
			Requires: "Protocol All goes with frontend and backend port 0.",
			Source:   "HA ports page", check: haPortsWhole,
		},
		{
			Name: "ha-ports-internal", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRuleHAPortsNotAllowed", CodeTag: Assumed, Tag: Documented,
			Requires: "A rule with protocol All belongs to a Standard load balancer and an internal frontend.",
			Source:   "HA ports page, limitations", check: haPortsInternal,
		},
		{
			Name: "rule-pools-agree", On: KindPut, Scopes: onlyLoadBalancers,
			Code:    "LoadBalancingRuleBackendAdressPoolAndBackendAddressPoolsCannotBeSetAtTheSameTimeWithDifferentValue",
			CodeTag: Observed, Tag: Observed,
			Requires: "If a rule has both `backendAddressPool` and `backendAddressPools`, they name the same.",
			Source:   "Azure/azure-sdk-for-java#31781", check: rulePoolsAgree,
		},
		{
			Name: "frontend-port-once", On: KindPut, Scopes: onlyLoadBalancers, Code: "RulesUseSameFrontendPortAndProtocol", CodeTag: Assumed, Tag: Documented,
			Requires: "No two rules, load balancing or inbound NAT, have the same frontend, port and protocol.",
			Source:   "multiple frontends page; no answer of the service found", check: frontendPortOnce,
		},
		{
			Name: "backend-port-once", On: KindPut, Scopes: onlyLoadBalancers, Code: "RulesUseSameBackendPortProtocolAndPool", CodeTag: Observed, Tag: Observed,
			Requires: "No two rules without floating IP have the same pool, backend port and protocol.",
			Source:   "MicrosoftDocs/azure-docs#117762", check: backendPortOnce,
		},
		{
			Name: "backend-port-once-floating", On: KindPut, Scopes: onlyLoadBalancers, Code: "RulesUseSameBackendPortProtocolAndPoolAndFrontendIPWithFloatingIPEnabled", CodeTag: Observed, Tag: Observed,
			Requires: "No two rules with floating IP have the same frontend, pool, backend port and protocol.",
			Source:   "kubernetes-sigs/cloud-provider-azure#521", check: backendPortOnceFloating,
		},
		{
			Name: "snat-disabled-beside-outbound-rule", On: KindPut, Scopes: onlyLoadBalancers,
			Code:    "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
			CodeTag: Observed, Tag: Observed,
			Requires: "A load balancing rule whose frontend an outbound rule uses sets `disableOutboundSnat`.",
			Source:   "error bodies in public test suites", check: snatDisabled,
		},
	}
}

// rules calls f with every load balancing rule until it returns a violation.
func (s *subject) rules(f func(id string, props fields) string) string {
	prefix := s.self.String() + "/" + lbRules + "/"
	for _, r := range objects(properties(s.body), lbRules) {
		if wrong := f(prefix+text(r, "name"), properties(r)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func rulePorts(s *subject) string {
	return s.rules(func(id string, props fields) string {
		if isAll(props) {
			return ""
		}
		wrong := portOutOfRange(id, "FrontendPort", props, "frontendPort", 65534)
		if wrong == "" {
			wrong = portOutOfRange(id, "BackendPort", props, "backendPort", 65535)
		}
		return wrong
	})
}

// portOutOfRange returns Azure's message for a bad port; word is Azure's name of the property.
func portOutOfRange(id, word string, props fields, key string, most int) string {
	if n, ok := number(props, key); ok && (n < 1 || n > most) {
		return fmt.Sprintf("Resource %s has invalid value of %s (%d). The value must be between 1 and %d.", id, word, n, most)
	}
	return ""
}

func ruleIdleTimeout(s *subject) string {
	return s.rules(func(id string, props fields) string {
		if n, ok := number(props, "idleTimeoutInMinutes"); ok && (n < 4 || n > 100) {
			return fmt.Sprintf("Resource %s has invalid value of IdleTimeoutInMinutes (%d). The value must be between 4 and 100.", id, n)
		}
		return ""
	})
}

func isAll(props fields) bool { return strings.EqualFold(text(props, "protocol"), "All") }

func haPortsWhole(s *subject) string {
	return s.rules(func(id string, props fields) string {
		front, _ := number(props, "frontendPort")
		back, _ := number(props, "backendPort")
		if isAll(props) && (front != 0 || back != 0) {
			return fmt.Sprintf("Load balancing rule %s has protocol All with frontend port %d and backend port %d: HA ports need both ports 0.", id, front, back)
		}
		return ""
	})
}

func haPortsInternal(s *subject) string {
	internal := map[string]bool{}
	for id, props := range s.configsOf {
		internal[strings.ToLower(id)] = reference(props, "subnet") != ""
	}
	return s.rules(func(id string, props fields) string {
		if isAll(props) && (!internal[reference(props, "frontendIPConfiguration")] || !sameName(sku(s.body), "Standard")) {
			return fmt.Sprintf("Load balancing rule %s has protocol All: HA ports need a Standard load balancer and an internal frontend.", id)
		}
		return ""
	})
}

// once returns an earlier rule with the same key, if any. Empty keys never match.
func once(seen map[string]string, key, id string) (other string, twice bool) {
	if key == "" {
		return "", false
	}
	other, twice = seen[key]
	seen[key] = id
	return other, twice
}

func frontendPortOnce(s *subject) string {
	seen := map[string]string{}
	check := func(id string, props fields) string {
		port, ok := number(props, "frontendPort")
		front := reference(props, "frontendIPConfiguration")
		if !ok || front == "" {
			return ""
		}
		key := fmt.Sprint(front, " ", strings.ToLower(text(props, "protocol")), " ", port)
		if other, twice := once(seen, key, id); twice {
			return fmt.Sprintf("Load balancer rules %s and %s use the same frontend IP configuration %s, frontend port %d and protocol %s.", other, id, front, port, text(props, "protocol"))
		}
		return ""
	}
	if wrong := s.rules(check); wrong != "" {
		return wrong
	}
	k := s.self.root.child(natRules)
	for _, r := range objects(properties(s.body), natRules) {
		if wrong := check(s.self.withChild(k, text(r, "name")).String(), properties(r)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// poolsOf returns the pools of a rule without duplicates.
func poolsOf(props fields) []string {
	ids := []string{reference(props, "backendAddressPool")}
	for _, p := range objects(props, pools) {
		ids = append(ids, strings.ToLower(text(p, "id")))
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

func rulePoolsAgree(s *subject) string {
	return s.rules(func(id string, props fields) string {
		one, list := reference(props, "backendAddressPool"), objects(props, pools)
		if one == "" || len(list) == 0 || len(list) == 1 && strings.EqualFold(text(list[0], "id"), one) {
			return ""
		}
		return fmt.Sprintf("Load balancing rule %s has BackendAddressPool and BackendAddressPools with different values.", id)
	})
}

func backendPortOnce(s *subject) string {
	return s.backendPort(false, "Load balancing rules %s and %s with floating IP disabled use the same protocol %s and backend port %d, and must not be used with the same backend address pool %s.")
}

func backendPortOnceFloating(s *subject) string {
	return s.backendPort(true, "Load balancing rules %s and %s with floating IP enabled use the same protocol %s and backend port %d and frontend IP, and must not be used with the same backend address pool %s.")
}

func (s *subject) backendPort(floating bool, message string) string {
	seen := map[string]string{}
	return s.rules(func(id string, props fields) string {
		port, ok := number(props, "backendPort")
		if !ok || (props["enableFloatingIP"] == true) != floating {
			return ""
		}
		front := ""
		if floating {
			front = reference(props, "frontendIPConfiguration")
		}
		for _, pool := range poolsOf(props) {
			key := fmt.Sprint(front, " ", pool, " ", strings.ToLower(text(props, "protocol")), " ", port)
			if other, twice := once(seen, key, id); twice {
				return fmt.Sprintf(message, other, id, text(props, "protocol"), port, pool)
			}
		}
		return ""
	})
}

func snatDisabled(s *subject) string {
	outbound := map[string]string{}
	for _, r := range objects(properties(s.body), outRules) {
		for _, f := range objects(properties(r), frontends) {
			outbound[strings.ToLower(text(f, "id"))] = text(r, "name")
		}
	}
	return s.rules(func(id string, props fields) string {
		by, shared := outbound[reference(props, "frontendIPConfiguration")]
		if shared && props["disableOutboundSnat"] != true {
			return fmt.Sprintf("Load balancing rule %s must disable SNAT since same frontend IP configuration is referenced by outbound rule %s.", id, by)
		}
		return ""
	})
}
