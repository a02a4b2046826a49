// SPDX-License-Identifier: Apache-2.0

package armerror

import "strings"

var resolutions = map[string]string{
	"LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule": `set "disableOutboundSNAT": true in azure.json, ` +
		"which sets disableOutboundSnat in all rules of Services, or choose another address",
	"LoadBalancerRuleCountLimitReachedForNic": "a network interface has at most 299 load balancing and inbound NAT rules, on all its load balancers together: " +
		"delete ports or Services, " + useAddresses,
	"MaxAvailabilitySetsInLoadBalancerReached": "a backend pool has machines of at most 150 availability sets, and a machine in none counts as one: " +
		"create machines in availability sets or scale sets, " + useAddresses,
	"AnotherInternalLoadBalancerExists": "the machines of an availability set can be behind one internal load balancer: " +
		"take the others of the set out of the pools of that load balancer, " + useAddresses,
	"RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig":     sameBackendPort,
	"RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndVmssIPConfig": sameBackendPort,
	"CannotUseInactiveHealthProbe": "the health probe of a scale set has to be a probe that a load balancing rule uses: " +
		"change or remove healthProbe in the scale set's network profile",
	"CannotRemoveRuleUsedByProbeUsedByVMSS":                                    "change or remove healthProbe in the scale set's network profile, which names the rule's probe; Weir retries automatically",
	"NotAllowedToDeleteLoadBalancerWithFrontendIpConfigurationInUseByGlobalLB": "remove the frontend from the backend pool of the Global load balancer; Weir retries automatically",
}

const (
	useAddresses    = "or set loadBalancerBackendPoolConfigurationType to nodeIP"
	sameBackendPort = "a machine receives flows to one backend port and protocol through one rule of its public and one of its internal load balancers: " +
		"change the backend port of one of the rules, take the machine out of one of the pools, or enable floating IP for the Service"
)

// AppendResolution appends the known fix for one of the codes, unless the text has it.
func AppendResolution(text string, codes []string) string {
	for _, code := range codes {
		if resolutions[code] != "" && !strings.Contains(text, resolutions[code]) {
			return strings.TrimRight(text, ". ") + ". To correct it, " + resolutions[code]
		}
	}
	return text
}
