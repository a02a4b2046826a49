// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"slices"
	"strings"
)

// maxSetsPerPool: a machine in no availability set counts as one.
const maxSetsPerPool = 150

func availabilitySetRules() []Rule {
	return []Rule{
		{
			Name: "availability-set-limit", On: KindPut, Scopes: memberScopes, Code: "MaxAvailabilitySetsInLoadBalancerReached", CodeCertainty: Documented, Certainty: Documented,
			Requires: fmt.Sprintf("The machines of a pool are of at most %d availability sets; a machine in none is a set of its own (that scale sets do not count is assumed).", maxSetsPerPool),
			Source:   "load balancer errors page", check: checkSetLimit,
		},
		{
			Name: "availability-set-one-internal", On: KindPut, Scopes: []Scope{ScopeNetworkInterface}, Code: "AnotherInternalLoadBalancerExists", CodeCertainty: Documented, Certainty: Observed,
			Requires: "The machines of an availability set are behind one internal load balancer at most.",
			Source:   "MicrosoftDocs/azure-docs#62981; code from the load balancer errors page", check: checkOneInternal,
		},
	}
}

func isScaleSet(set string) bool { return strings.Contains(set, "/virtualmachinescalesets/") }

func checkSetLimit(s *validationTarget) string {
	for _, m := range s.memberships() {
		home := s.e.setOfIPConfig(m.config)
		if home == "" || isScaleSet(home) {
			continue
		}
		sets := map[string]bool{home: true}
		for _, other := range s.e.references().pool[m.pool.key()] {
			if set := s.e.setOfIPConfig(other); set != "" && !isScaleSet(set) {
				sets[set] = true
			}
		}
		if len(sets) > maxSetsPerPool {
			return fmt.Sprintf("Backend address pool %s of load balancer %s would have machines of %d availability sets; the limit is %d.", m.pool, m.loadBalancer.id, len(sets), maxSetsPerPool)
		}
	}
	return ""
}

func checkOneInternal(s *validationTarget) string {
	home := s.e.setOfIPConfig(s.self.String() + "/" + ipConfigKind.collection + "/")
	if !strings.Contains(home, "/availabilitysets/") {
		return ""
	}
	for _, m := range s.memberships() {
		if !isInternal(m.loadBalancer.body) {
			continue
		}
		for _, other := range s.e.otherLoadBalancers(m.loadBalancer.id) {
			if isInternal(other.body) && slices.ContainsFunc(s.e.poolConfigs(other), func(config string) bool {
				return s.e.setOfIPConfig(config) == home && !strings.HasPrefix(strings.ToLower(config), s.self.key()+"/")
			}) {
				return fmt.Sprintf("Network interface %s of availability set %s cannot use internal load balancer %s, since another internal load balancer %s exists for the availability set.", s.self, home, m.loadBalancer.id, other.id)
			}
		}
	}
	return ""
}

// poolConfigs returns the IP configurations of network interfaces in the pools of a load balancer.
func (e *Emulator) poolConfigs(balancer *aggregate) (configs []string) {
	for _, p := range objectList(propertyFields(balancer.body), pools) {
		configs = append(configs, e.references().pool[balancer.id.withChild(poolKind, stringField(p, "name")).key()]...)
	}
	return configs
}
