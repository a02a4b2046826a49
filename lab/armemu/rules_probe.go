// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

func probeRules() []Rule {
	return []Rule{
		{
			Name: "probe-port", On: KindPut, Scopes: onlyLoadBalancers, Code: "PortValueIsOutOfRange", CodeTag: Observed, Tag: Documented,
			Requires: "The port of a probe is 1 to 65535.",
			Source:   "API description; code from " + recorded, check: probePort,
		},
		{
			Name: "probe-interval", On: KindPut, Scopes: onlyLoadBalancers, Code: "ProbeIntervalIsOutOfRange", CodeTag: Observed, Tag: Observed,
			Requires: fmt.Sprintf("The interval of a probe is %d to %d seconds.", leastInterval, greatestInterval),
			Source:   recorded, check: probeInterval,
		},
		{
			Name: "probe-count", On: KindPut, Scopes: onlyLoadBalancers, Code: "NumberOfProbesIsOutOfRange", CodeTag: Observed, Tag: Observed,
			Requires: "The number of probes is at least 1, and as many intervals are no longer than the longest one (how the bound depends on the interval is assumed).",
			Source:   recorded, check: probeCount,
		},
		{
			Name: "probe-threshold", On: KindPut, Scopes: onlyLoadBalancers, Code: "ProbeThresholdIsOutOfRange", CodeTag: Assumed, Tag: Documented,
			Requires: "The threshold of a probe is at least 1.",
			Source:   "API description; code by analogy with the number of probes", check: probeThreshold,
		},
		{
			Name: "probe-path-tcp", On: KindPut, Scopes: onlyLoadBalancers, Code: "ProbeRequestPathIsNotNull", CodeTag: Observed, Tag: Observed,
			Requires: "A probe with protocol Tcp has no request path.",
			Source:   recorded, check: probePathTCP,
		},
		{
			Name: "probe-path-http", On: KindPut, Scopes: onlyLoadBalancers, Code: "ProbeRequestPathIsNull", CodeTag: Assumed, Tag: Documented,
			Requires: "A probe with protocol Http or Https has a request path.",
			Source:   "API description; code by analogy with probes by Tcp", check: probePathHTTP,
		},
		{
			Name: "https-probe-needs-standard", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerProbeProtocolNotSupported", CodeTag: Assumed, Tag: Documented,
			Requires: "A probe with protocol Https belongs to a Standard load balancer.",
			Source:   "health probes page", check: httpsProbe,
		},
	}
}

// probes calls f with every probe until it returns a violation.
func (s *subject) probes(f func(id string, props fields) string) string {
	k := s.self.root.child(lbProbes)
	for _, p := range objects(properties(s.body), lbProbes) {
		if wrong := f(s.self.withChild(k, text(p, "name")).String(), properties(p)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// Bounds of a probe's interval, in seconds.
const leastInterval, greatestInterval = 5, 1<<31 - 2

func probePort(s *subject) string {
	return s.probes(func(id string, props fields) string { return portOutOfRange(id, "Port", props, "port", 65535) })
}

func probeInterval(s *subject) string {
	return s.probes(func(id string, props fields) string {
		if n, ok := number(props, "intervalInSeconds"); ok && (n < leastInterval || n > greatestInterval) {
			return fmt.Sprintf("Probe %s has invalid value of IntervalInSeconds (%d). The value must be between %d and %d.", id, n, leastInterval, greatestInterval)
		}
		return ""
	})
}

func probeCount(s *subject) string {
	return s.probes(func(id string, props fields) string {
		interval, _ := number(props, "intervalInSeconds")
		most := greatestInterval / max(interval, 1)
		if n, ok := number(props, "numberOfProbes"); ok && (n < 1 || n > most) {
			return fmt.Sprintf("Probe %s has invalid value of NumberOfProbes (%d). The value must be between 1 and %d.", id, n, most)
		}
		return ""
	})
}

func probeThreshold(s *subject) string {
	return s.probes(func(id string, props fields) string {
		if n, ok := number(props, "probeThreshold"); ok && n < 1 {
			return fmt.Sprintf("Probe %s has invalid value of ProbeThreshold (%d). The value must be at least 1.", id, n)
		}
		return ""
	})
}

func probePathTCP(s *subject) string {
	return s.probes(func(id string, props fields) string {
		if path := text(props, "requestPath"); path != "" && strings.EqualFold(text(props, "protocol"), "Tcp") {
			return fmt.Sprintf("Probe %s has protocol Tcp and request path %s: the request path must be null.", id, path)
		}
		return ""
	})
}

func probePathHTTP(s *subject) string {
	return s.probes(func(id string, props fields) string {
		protocol := text(props, "protocol")
		if text(props, "requestPath") == "" && (strings.EqualFold(protocol, "Http") || strings.EqualFold(protocol, "Https")) {
			return fmt.Sprintf("Probe %s has protocol %s and no request path.", id, protocol)
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
