// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

func healthProbeRules() []Rule {
	return []Rule{
		{
			Name: "scale-set-health-probe", On: KindPut, Scopes: []Scope{ScopeScaleSet}, Code: "CannotUseInactiveHealthProbe", CodeCertainty: Documented, Certainty: Documented,
			Requires: "The probe that a scale set names as its health probe is used by a load balancing rule.",
			Source:   "load balancer errors page", check: checkHealthProbe,
		},
		{
			Name: "health-probe-keeps-rule", On: KindPut, Scopes: loadBalancerScopes, Code: "CannotRemoveRuleUsedByProbeUsedByVMSS", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A PUT leaves out no rule with a probe that a scale set names as its health probe, even if another rule uses that probe (that the rule cannot change to another probe either is assumed).",
			Source:   "hashicorp/terraform-provider-azurerm#4769, Azure/azure-cli#14167", check: checkHealthProbeRules,
		},
	}
}

func healthProbe(scaleSet fields) string {
	return stringField(objectField(objectField(objectField(propertyFields(scaleSet), machineProfile), "networkProfile"), "healthProbe"), "id")
}

func checkHealthProbe(s *validationTarget) string {
	id := healthProbe(s.body)
	if id == "" {
		return ""
	}
	balancer, _, _ := strings.Cut(strings.ToLower(id), "/"+lbProbes+"/")
	if agg := s.e.aggregates[balancer]; agg != nil {
		for _, r := range objectList(propertyFields(agg.body), lbRules) {
			if strings.EqualFold(referenceID(propertyFields(r), "probe"), id) {
				return ""
			}
		}
	}
	return fmt.Sprintf("VM scale set %s cannot use probe %s as a HealthProbe because load balancing rules that use the specified probe are not found.", s.self, id)
}

func checkHealthProbeRules(s *validationTarget) string {
	if s.before == nil || len(s.e.references().health) == 0 {
		return ""
	}
	after := objectList(propertyFields(s.body), lbRules)
	for _, r := range objectList(propertyFields(s.before), lbRules) {
		probe := referenceID(propertyFields(r), "probe")
		sets := s.e.references().health[probe]
		if i := indexByName(after, stringField(r, "name")); len(sets) == 0 || i >= 0 && referenceID(propertyFields(after[i]), "probe") == probe {
			continue
		}
		return fmt.Sprintf("Load balancer rule %s/%s/%s cannot be removed because the rule references the load balancer probe %s that is used as health probe by VM scale set %s. To remove this rule, please update VM scale set to remove the reference to the probe.",
			s.self, lbRules, stringField(r, "name"), probe, sets[0])
	}
	return ""
}
