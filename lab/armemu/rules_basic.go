// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func basicRules() []Rule {
	return []Rule{
		{
			Name: "basic-one-set", On: KindPut, Scopes: memberScopes, Code: "NetworkInterfaceAndLoadBalancerAreInDifferentAvailabilitySets", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The machines behind a Basic load balancer are those of one availability set or of one scale set; one in neither is a set of its own.",
			Source:   "load balancer errors page; body from kubernetes/kubernetes#58600", check: checkBasicSet,
		},
		{
			Name: "availability-set-sku", On: KindPut, Scopes: []Scope{ScopeNetworkInterface}, Code: "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The load balancers and public IPs of all machines of an availability set have one SKU.",
			Source:   "microsoft/MCW-SAP-NetWeaver-on-Azure#15", check: checkSetSKU,
		},
		{
			Name: "outbound-rule-needs-standard", On: KindPut, Scopes: loadBalancerScopes, Code: "OutboundRuleNotSupportedForBasicSku", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A load balancer with outbound rules is Standard.",
			Source:   "load balancer SKUs page", check: requireStandardOutbound,
		},
		{
			Name: "zones-need-standard", On: KindPut, Scopes: []Scope{ScopeLoadBalancer, ScopePublicIP}, Code: "SkuDoesNotSupportAvailabilityZones", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A Basic public IP, and a frontend of a Basic load balancer, has no zones.",
			Source:   "load balancer SKUs page; public IP addresses page", check: requireStandardZones,
		},
	}
}

// setOfIPConfig: an availability set, a scale set, or the machine itself.
func (e *Emulator) setOfIPConfig(config string) string {
	nic, _, _ := strings.Cut(strings.ToLower(config), "/"+strings.ToLower(ipConfigKind.collection)+"/")
	if set, _, inSet := strings.Cut(nic, "/virtualmachines/"); inSet && strings.Contains(set, "/virtualmachinescalesets/") {
		return set
	}
	if set, _, model := strings.Cut(nic, "/networkinterfaces/"); model && strings.Contains(set, "/virtualmachinescalesets/") {
		return set
	}
	vms := e.references().nic[nic]
	if len(vms) == 0 {
		return ""
	}
	if agg := e.aggregates[strings.ToLower(vms[0])]; agg != nil {
		for _, set := range []string{referenceID(propertyFields(agg.body), "availabilitySet"), referenceID(propertyFields(agg.body), "virtualMachineScaleSet")} {
			if set != "" {
				return set
			}
		}
	}
	return strings.ToLower(vms[0])
}

func checkBasicSet(s *validationTarget) string {
	for _, m := range s.memberships() {
		home := s.e.setOfIPConfig(m.config)
		if home == "" || !isBasic(m.loadBalancer.body) {
			continue
		}
		for _, p := range objectList(propertyFields(m.loadBalancer.body), pools) {
			for _, other := range s.e.references().pool[m.loadBalancer.id.withChild(poolKind, stringField(p, "name")).key()] {
				if there := s.e.setOfIPConfig(other); there != "" && there != home {
					return fmt.Sprintf("Network interface %s uses load balancer %s associated with different availability set (%s) than availability set %s.", m.nic, m.loadBalancer.id, there, home)
				}
			}
		}
	}
	return ""
}

func (v *validationTarget) skuResources() (aggregates []*aggregate) {
	for _, m := range v.memberships() {
		aggregates = append(aggregates, m.loadBalancer)
	}
	for _, props := range v.ipConfigs {
		if ip := v.e.aggregates[referenceID(props, "publicIPAddress")]; ip != nil {
			aggregates = append(aggregates, ip)
		}
	}
	return aggregates
}

func checkSetSKU(s *validationTarget) string {
	home, own := s.e.setOfIPConfig(s.self.String()+"/"+ipConfigKind.collection+"/"), s.skuResources()
	if !strings.Contains(home, "/availabilitysets/") {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(s.e.references().nic)) {
		nic := s.e.aggregates[key]
		if nic == nil || key == s.self.key() || s.e.setOfIPConfig(key+"/"+ipConfigKind.collection+"/") != home {
			continue
		}
		neighbour := &validationTarget{proposal: s.proposal, self: nic.id, scope: ScopeNetworkInterface, body: nic.body}
		for _, b := range neighbour.skuResources() {
			for _, a := range own {
				if !sameName(skuName(a.body), skuName(b.body)) {
					return fmt.Sprintf("Different basic sku and standard sku load balancer or public Ip resources in availability set is not allowed %s and %s.", a.id, b.id)
				}
			}
		}
	}
	return ""
}

func requireStandardOutbound(s *validationTarget) string {
	if rules := objectList(propertyFields(s.body), outRules); len(rules) > 0 && isBasic(s.body) {
		return fmt.Sprintf("Outbound rule %s is not supported on Basic sku load balancer %s.", stringField(rules[0], "name"), s.self)
	}
	return ""
}

func requireStandardZones(s *validationTarget) string {
	if !isBasic(s.body) {
		return ""
	}
	for _, part := range append(objectList(propertyFields(s.body), frontends), s.body) {
		if len(sortedValues(part["zones"])) > 0 {
			return fmt.Sprintf("Resource %s of sku Basic does not support availability zones.", s.self)
		}
	}
	return ""
}
