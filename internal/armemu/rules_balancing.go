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
			Name: "rule-ports", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRulePortOutOfRange", CodeTag: Assumed, Tag: Documented,
			Requires: "The frontend port of a rule is 0 to 65534, its backend port 0 to 65535.",
			Source:   "API description", check: rulePorts,
		},
		{
			Name: "rule-idle-timeout", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRuleIdleTimeoutOutOfRange", CodeTag: Assumed, Tag: Documented,
			Requires: "The idle timeout of a rule is 4 to 100 minutes.",
			Source:   "TCP reset and idle timeout page", check: ruleIdleTimeout,
		},
		{
			Name: "ha-ports-whole", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRuleHAPortsInvalid", CodeTag: Assumed, Tag: Documented,
			Requires: "Protocol All goes with frontend and backend port 0, and port 0 with protocol All.",
			Source:   "HA ports page", check: haPortsWhole,
		},
		{
			Name: "ha-ports-internal", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancingRuleHAPortsNotAllowed", CodeTag: Assumed, Tag: Documented,
			Requires: "A rule with protocol All belongs to a Standard load balancer and an internal frontend.",
			Source:   "HA ports page, limitations", check: haPortsInternal,
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

// rules calls f with every load balancing rule until it returns a message.
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
		front, ok := number(props, "frontendPort")
		back, ok2 := number(props, "backendPort")
		if ok && (front < 0 || front > 65534) || ok2 && (back < 0 || back > 65535) {
			return fmt.Sprintf("Load balancing rule %s has frontend port %d and backend port %d.", id, front, back)
		}
		return ""
	})
}

func ruleIdleTimeout(s *subject) string {
	return s.rules(func(id string, props fields) string {
		if n, ok := number(props, "idleTimeoutInMinutes"); ok && (n < 4 || n > 100) {
			return fmt.Sprintf("Load balancing rule %s has an idle timeout of %d minutes; 4 to 100 are allowed.", id, n)
		}
		return ""
	})
}

func isAll(props fields) bool { return strings.EqualFold(text(props, "protocol"), "All") }

func haPortsWhole(s *subject) string {
	return s.rules(func(id string, props fields) string {
		front, ok := number(props, "frontendPort")
		back, ok2 := number(props, "backendPort")
		zero := ok && front == 0 || ok2 && back == 0
		other := front != 0 || back != 0
		if isAll(props) && other || !isAll(props) && zero {
			return fmt.Sprintf("Load balancing rule %s has protocol %s with frontend port %d and backend port %d: HA ports need protocol All and both ports 0.",
				id, text(props, "protocol"), front, back)
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

// once finds two rules for which key gives the same words; an empty key is
// compared with none.
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

// poolsOf are the pools that a rule names, each once.
func poolsOf(props fields) []string {
	ids := []string{reference(props, "backendAddressPool")}
	for _, p := range objects(props, pools) {
		ids = append(ids, strings.ToLower(text(p, "id")))
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
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

func probeRules() []Rule {
	return []Rule{
		{
			Name: "probe-bounds", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerProbeOutOfRange", CodeTag: Assumed, Tag: Documented,
			Requires: "A probe's interval is at least 5 seconds, its port 1 to 65535, its numbers of probes at least 1.",
			Source:   "API description; health probes page", check: probeBounds,
		},
		{
			Name: "probe-path", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerProbeRequestPathInvalid", CodeTag: Assumed, Tag: Documented,
			Requires: "A probe has a request path if its protocol is Http or Https, and none if it is Tcp.",
			Source:   "API description", check: probePath,
		},
		{
			Name: "https-probe-needs-standard", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerProbeProtocolNotSupported", CodeTag: Assumed, Tag: Documented,
			Requires: "A probe with protocol Https belongs to a Standard load balancer.",
			Source:   "health probes page", check: httpsProbe,
		},
	}
}

// probes calls f with every probe until it returns a message.
func (s *subject) probes(f func(id string, props fields) string) string {
	k := s.self.root.child(lbProbes)
	for _, p := range objects(properties(s.body), lbProbes) {
		if wrong := f(s.self.withChild(k, text(p, "name")).String(), properties(p)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func probeBounds(s *subject) string {
	return s.probes(func(id string, props fields) string {
		for _, b := range []struct {
			key      string
			min, max int
		}{
			{"intervalInSeconds", 5, 1 << 31}, {"port", 1, 65535}, {"numberOfProbes", 1, 1 << 31}, {"probeThreshold", 1, 1 << 31},
		} {
			if n, ok := number(props, b.key); ok && (n < b.min || n > b.max) {
				return fmt.Sprintf("Probe %s has %s %d.", id, b.key, n)
			}
		}
		return ""
	})
}

func probePath(s *subject) string {
	return s.probes(func(id string, props fields) string {
		protocol, path := strings.ToLower(text(props, "protocol")), text(props, "requestPath")
		if protocol == "tcp" && path != "" || strings.HasPrefix(protocol, "http") && path == "" {
			return fmt.Sprintf("Probe %s has protocol %s and request path %q.", id, text(props, "protocol"), path)
		}
		return ""
	})
}

func httpsProbe(s *subject) string {
	return s.probes(func(id string, props fields) string {
		if strings.EqualFold(text(props, "protocol"), "Https") && !sameName(sku(s.body), "Standard") {
			return fmt.Sprintf("Probe %s has protocol Https, but its load balancer's SKU is %s.", id, sku(s.body))
		}
		return ""
	})
}
