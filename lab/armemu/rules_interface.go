// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"slices"
	"strings"
)

func networkInterfaceRules() []Rule {
	only := []Scope{ScopeNetworkInterface}
	return []Rule{
		{
			Name: "nic-pool-not-mixed", On: KindPut, Scopes: memberScopes,
			Code:          "CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool",
			CodeCertainty: Observed, Certainty: Observed,
			Requires: "An IP configuration joins no pool that holds IP addresses.",
			Source:   "backend pool management page; code from hashicorp/terraform-provider-azurerm#25962", check: nicPoolNotMixed,
		},
		{
			Name: "nic-one-load-balancer-a-kind", On: KindPut, Scopes: []Scope{ScopeNetworkInterface, ScopeScaleSetVM}, Code: "NetworkInterfaceUsesMultipleLoadBalancersOfSameType", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A NIC is in pools of one public load balancer and of one internal one at most; one without frontends is neither (assumed).",
			Source:   "seanknox/aztack#3", check: checkLoadBalancerType,
		},
		{
			Name: "scale-set-one-load-balancer-a-kind", On: KindPut, Scopes: []Scope{ScopeScaleSet}, Code: "VMScaleSetCannotUseMultipleLoadBalancersOfSameType", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The same of an interface in the model of a scale set.",
			Source:   "public issues", check: checkLoadBalancerType,
		},
		{
			Name: "nic-sku", On: KindPut, Scopes: only, Code: "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed", CodeCertainty: Documented, Certainty: Documented,
			Requires: "The load balancers and public IPs of a NIC have one SKU.",
			Source:   "load balancer errors page; microsoft/MCW-SAP-NetWeaver-on-Azure#15", check: checkSKU,
		},
		{
			Name: "scale-set-sku", On: KindPut, Scopes: []Scope{ScopeScaleSet, ScopeScaleSetVM},
			Code: "DifferentSkuLoadBalancerAndPublicIPAddressNotAllowedInVMSS", CodeCertainty: Documented, Certainty: Documented,
			Requires: "The load balancers of an interface of a scale set have one SKU.",
			Source:   "load balancer errors page", check: checkSKU,
		},
		{
			Name: "nic-location", On: KindPut, Scopes: memberScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The load balancers of a NIC are in its location.",
			Source:   "Azure/azure-service-operator, the words of the answer to a dangling reference", check: checkLocation,
		},
		{
			Name: "nic-not-in-use", On: KindDelete, Scopes: only, Code: "NicInUse", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No virtual machine has the NIC.",
			Source:   "azure-cli recordings", check: checkNICInUse,
		},
	}
}

var memberScopes = []Scope{ScopeNetworkInterface, ScopeScaleSet, ScopeScaleSetVM}

type membership struct {
	config       string // ID of the IP configuration
	nic          string // a scale set has several
	pool         resourceID
	loadBalancer *aggregate
}

func (v *validationTarget) memberships() []membership {
	var memberships []membership
	for id, props := range v.ipConfigs {
		nic, _, _ := strings.Cut(id, "/"+ipConfigKind.collection+"/")
		for _, ref := range objectList(props, nicPools) {
			pool, err := parseID(stringField(ref, "id"))
			if agg := v.e.aggregates[pool.poolLoadBalancerKey()]; err == nil && agg != nil {
				memberships = append(memberships, membership{id, nic, pool, agg})
			}
		}
	}
	return memberships
}

func (r resourceID) poolLoadBalancerKey() string {
	if r.child != poolKind {
		return ""
	}
	return r.rootKey()
}

func nicPoolNotMixed(s *validationTarget) string {
	for _, m := range s.memberships() {
		body := findChild(m.loadBalancer.body, m.pool)
		if slices.ContainsFunc(objectList(propertyFields(body), addresses), isIPBased) {
			return fmt.Sprintf("IP configuration %s cannot join backend address pool %s, which holds IP addresses.", m.config, m.pool)
		}
	}
	return ""
}

func (v *validationTarget) eachLoadBalancerPair(f func(nic string, a, b *aggregate) string) string {
	memberships := v.memberships()
	for i, m := range memberships {
		for _, other := range memberships[:i] {
			if other.nic != m.nic || other.loadBalancer == m.loadBalancer {
				continue
			}
			if wrong := f(m.nic, other.loadBalancer, m.loadBalancer); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func checkLoadBalancerType(s *validationTarget) string {
	return s.eachLoadBalancerPair(func(nic string, a, b *aggregate) string {
		for _, agg := range []*aggregate{a, b} {
			if len(objectList(propertyFields(agg.body), frontends)) == 0 {
				return ""
			}
		}
		if isInternal(a.body) != isInternal(b.body) {
			return ""
		}
		return fmt.Sprintf("Network interface %s references more than one load balancer of the same type (internal or public): %s, %s. Only one load balancer of each type is allowed.", nic, a.id, b.id)
	})
}

func checkSKU(s *validationTarget) string {
	differ := func(a, b *aggregate) string {
		if sameName(skuName(a.body), skuName(b.body)) {
			return ""
		}
		return fmt.Sprintf("Different basic sku and standard sku load balancer or public Ip resources in availability set is not allowed %s and %s.", a.id, b.id)
	}
	if wrong := s.eachLoadBalancerPair(func(_ string, a, b *aggregate) string { return differ(a, b) }); wrong != "" {
		return wrong
	}
	memberships := s.memberships()
	for _, props := range s.ipConfigs {
		if pip := s.e.aggregates[referenceID(props, "publicIPAddress")]; pip != nil && len(memberships) > 0 {
			if wrong := differ(memberships[0].loadBalancer, pip); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func checkLocation(s *validationTarget) string {
	for _, m := range s.memberships() {
		if at, there := normalizedLocation(s.body), normalizedLocation(m.loadBalancer.body); at != "" && there != "" && at != there {
			return missingReference(m.pool.String(), m.config)
		}
	}
	return ""
}

func normalizedLocation(body fields) string {
	return strings.ToLower(strings.ReplaceAll(stringField(body, "location"), " ", ""))
}

func checkNICInUse(s *validationTarget) string {
	if by := s.e.references().nic[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", s.self, strings.Join(by, ", "))
	}
	return ""
}
