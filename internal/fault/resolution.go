// SPDX-License-Identifier: Apache-2.0

package fault

import "strings"

var resolutions = map[string]string{
	"LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule": `set "disableOutboundSNAT": true in azure.json, ` +
		"which sets disableOutboundSnat in all rules of Services, or choose another address",
	"LoadBalancerRuleCountLimitReachedForNic": "a network interface has at most 299 load balancing and inbound NAT rules, on all its load balancers together: " +
		"delete ports or Services, or set loadBalancerBackendPoolConfigurationType to nodeIP",
}

// AppendResolution appends the known fix for one of the codes.
func AppendResolution(text string, codes []string) string {
	for _, code := range codes {
		if resolutions[code] != "" {
			return strings.TrimRight(text, ". ") + ". To correct it, " + resolutions[code]
		}
	}
	return text
}
