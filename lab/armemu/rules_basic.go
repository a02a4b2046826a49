// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// basicRules returns the rules that separate Basic and Standard, except those of other rule sets.
func basicRules() []Rule {
	return []Rule{
		{
			Name: "basic-one-set", On: KindPut, Scopes: onlyMembers, Code: "NetworkInterfaceAndLoadBalancerAreInDifferentAvailabilitySets", CodeTag: Observed, Tag: Documented,
			Requires: "The machines behind a Basic load balancer are those of one availability set or of one scale set; one in neither is a set of its own.",
			Source:   "common load balancer deployment errors page; body from kubernetes/kubernetes#58600", check: oneSetBehindBasic,
		},
		{
			Name: "availability-set-sku", On: KindPut, Scopes: []Scope{ScopeNetworkInterface}, Code: "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed", CodeTag: Observed, Tag: Observed,
			Requires: "The load balancers and public IP addresses of all machines of an availability set have one SKU.",
			Source:   "microsoft/MCW-SAP-NetWeaver-on-Azure#15", check: oneSkuInSet,
		},
		{
			Name: "outbound-rule-needs-standard", On: KindPut, Scopes: onlyLoadBalancers, Code: "OutboundRuleNotSupportedForBasicSku", CodeTag: Assumed, Tag: Documented,
			Requires: "A load balancer with outbound rules is Standard.",
			Source:   "load balancer SKUs page", check: outboundNeedsStandard,
		},
		{
			Name: "zones-need-standard", On: KindPut, Scopes: []Scope{ScopeLoadBalancer, ScopePublicIP}, Code: "SkuDoesNotSupportAvailabilityZones", CodeTag: Assumed, Tag: Documented,
			Requires: "A Basic public IP address, and a frontend of a Basic load balancer, has no zones.",
			Source:   "load balancer SKUs page; public IP addresses page", check: zonesNeedStandard,
		},
	}
}

// homeOf returns the availability set or scale set of the machine with this IP configuration, or
// the machine itself; "" if there is none.
func (e *Emulator) homeOf(config string) string {
	nic, _, _ := strings.Cut(strings.ToLower(config), "/"+strings.ToLower(ipConfigKind.collection)+"/")
	if set, _, inSet := strings.Cut(nic, "/virtualmachines/"); inSet && strings.Contains(set, "/virtualmachinescalesets/") {
		return set
	}
	if set, _, model := strings.Cut(nic, "/networkinterfaces/"); model && strings.Contains(set, "/virtualmachinescalesets/") {
		return set
	}
	vms := e.index().nic[nic]
	if len(vms) == 0 {
		return ""
	}
	if agg := e.aggregates[strings.ToLower(vms[0])]; agg != nil {
		for _, set := range []string{reference(properties(agg.body), "availabilitySet"), reference(properties(agg.body), "virtualMachineScaleSet")} {
			if set != "" {
				return set
			}
		}
	}
	return strings.ToLower(vms[0])
}

func oneSetBehindBasic(s *subject) string {
	for _, m := range s.joins() {
		home := s.e.homeOf(m.config)
		if home == "" || !sameName(sku(m.balancer.body), "Basic") {
			continue
		}
		for _, p := range objects(properties(m.balancer.body), pools) {
			for _, other := range s.e.index().pool[m.balancer.id.withChild(poolKind, text(p, "name")).key()] {
				if there := s.e.homeOf(other); there != "" && there != home {
					return fmt.Sprintf("Network interface %s uses load balancer %s associated with different availability set (%s) than availability set %s.", m.nic, m.balancer.id, there, home)
				}
			}
		}
	}
	return ""
}

// skuUsers returns the load balancers and public IP addresses of a network interface.
func (s *subject) skuUsers() (all []*aggregate) {
	for _, m := range s.joins() {
		all = append(all, m.balancer)
	}
	for _, props := range s.configsOf {
		if ip := s.e.aggregates[reference(props, "publicIPAddress")]; ip != nil {
			all = append(all, ip)
		}
	}
	return all
}

func oneSkuInSet(s *subject) string {
	home, own := s.e.homeOf(s.self.String()+"/"+ipConfigKind.collection+"/"), s.skuUsers()
	if !strings.Contains(home, "/availabilitysets/") {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(s.e.index().nic)) {
		nic := s.e.aggregates[key]
		if nic == nil || key == s.self.key() || s.e.homeOf(key+"/"+ipConfigKind.collection+"/") != home {
			continue
		}
		neighbour := &subject{proposal: s.proposal, self: nic.id, scope: ScopeNetworkInterface, body: nic.body}
		for _, b := range neighbour.skuUsers() {
			for _, a := range own {
				if !sameName(sku(a.body), sku(b.body)) {
					return fmt.Sprintf("Different basic sku and standard sku load balancer or public Ip resources in availability set is not allowed %s and %s.", a.id, b.id)
				}
			}
		}
	}
	return ""
}

func outboundNeedsStandard(s *subject) string {
	if rules := objects(properties(s.body), outRules); len(rules) > 0 && sameName(sku(s.body), "Basic") {
		return fmt.Sprintf("Outbound rule %s is not supported on Basic sku load balancer %s.", text(rules[0], "name"), s.self)
	}
	return ""
}

func zonesNeedStandard(s *subject) string {
	if !sameName(sku(s.body), "Basic") {
		return ""
	}
	for _, part := range append(objects(properties(s.body), frontends), s.body) {
		if len(words(part["zones"])) > 0 {
			return fmt.Sprintf("Resource %s of sku Basic does not support availability zones.", s.self)
		}
	}
	return ""
}
