// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

func probeRules() []Rule {
	return []Rule{
		{
			Name: "probe-port", On: KindPut, Scopes: loadBalancerScopes, Code: "PortValueIsOutOfRange", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The port of a probe is 1 to 65535.",
			Source:   "API description; code from " + recordedSource, check: probePort,
		},
		{
			Name: "probe-interval", On: KindPut, Scopes: loadBalancerScopes, Code: "ProbeIntervalIsOutOfRange", CodeCertainty: Observed, Certainty: Observed,
			Requires: fmt.Sprintf("The interval of a probe is %d to %d seconds.", minProbeInterval, maxProbeInterval),
			Source:   recordedSource, check: probeInterval,
		},
		{
			Name: "probe-count", On: KindPut, Scopes: loadBalancerScopes, Code: "NumberOfProbesIsOutOfRange", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The number of probes is at least 1, and as many intervals are no longer than the longest one (how the bound depends on the interval is assumed).",
			Source:   recordedSource, check: probeCount,
		},
		{
			Name: "probe-threshold", On: KindPut, Scopes: loadBalancerScopes, Code: "ProbeThresholdIsOutOfRange", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The threshold of a probe is at least 1.",
			Source:   "API description; code by analogy with the number of probes", check: probeThreshold,
		},
		{
			Name: "probe-path-tcp", On: KindPut, Scopes: loadBalancerScopes, Code: "ProbeRequestPathIsNotNull", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A probe with protocol Tcp has no request path.",
			Source:   recordedSource, check: probePathTCP,
		},
		{
			Name: "probe-path-http", On: KindPut, Scopes: loadBalancerScopes, Code: "ProbeRequestPathIsNull", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A probe with protocol Http or Https has a request path.",
			Source:   "API description; code by analogy with probes by Tcp", check: probePathHTTP,
		},
		{
			Name: "https-probe-needs-standard", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerProbeProtocolNotSupported", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A probe with protocol Https needs a Standard load balancer.",
			Source:   "health probes page", check: httpsProbe,
		},
	}
}

func (v *validationTarget) eachProbe(f func(id string, props fields) string) string {
	k := v.self.root.findChild(lbProbes)
	for _, p := range objectList(propertyFields(v.body), lbProbes) {
		if wrong := f(v.self.withChild(k, stringField(p, "name")).String(), propertyFields(p)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// minProbeInterval and maxProbeInterval are in seconds.
const minProbeInterval, maxProbeInterval = 5, 1<<31 - 2

func probePort(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string { return checkPort(id, "Port", props, "port", 65535) })
}

func probeInterval(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		if n, ok := intField(props, "intervalInSeconds"); ok && (n < minProbeInterval || n > maxProbeInterval) {
			return fmt.Sprintf("Probe %s has invalid value of IntervalInSeconds (%d). The value must be between %d and %d.", id, n, minProbeInterval, maxProbeInterval)
		}
		return ""
	})
}

func probeCount(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		interval, _ := intField(props, "intervalInSeconds")
		limit := maxProbeInterval / max(interval, 1)
		if n, ok := intField(props, "numberOfProbes"); ok && (n < 1 || n > limit) {
			return fmt.Sprintf("Probe %s has invalid value of NumberOfProbes (%d). The value must be between 1 and %d.", id, n, limit)
		}
		return ""
	})
}

func probeThreshold(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		if n, ok := intField(props, "probeThreshold"); ok && n < 1 {
			return fmt.Sprintf("Probe %s has invalid value of ProbeThreshold (%d). The value must be at least 1.", id, n)
		}
		return ""
	})
}

func probePathTCP(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		if path := stringField(props, "requestPath"); path != "" && strings.EqualFold(stringField(props, "protocol"), "Tcp") {
			return fmt.Sprintf("Probe %s has protocol Tcp and request path %s: the request path must be null.", id, path)
		}
		return ""
	})
}

func probePathHTTP(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		protocol := stringField(props, "protocol")
		if stringField(props, "requestPath") == "" && (strings.EqualFold(protocol, "Http") || strings.EqualFold(protocol, "Https")) {
			return fmt.Sprintf("Probe %s has protocol %s and no request path.", id, protocol)
		}
		return ""
	})
}

func httpsProbe(s *validationTarget) string {
	return s.eachProbe(func(id string, props fields) string {
		if strings.EqualFold(stringField(props, "protocol"), "Https") && isBasic(s.body) {
			return fmt.Sprintf("Probe %s has protocol Https, but its load balancer's SKU is %s.", id, skuName(s.body))
		}
		return ""
	})
}
