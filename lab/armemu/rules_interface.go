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
			Name: "nic-pool-not-mixed", On: KindPut, Scopes: onlyMembers,
			Code:    "CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool",
			CodeTag: Observed, Tag: Observed,
			Requires: "An IP configuration joins no pool that holds IP addresses.",
			Source:   "backend pool management page; code from hashicorp/terraform-provider-azurerm#25962", check: nicPoolNotMixed,
		},
		{
			Name: "nic-one-load-balancer-a-kind", On: KindPut, Scopes: []Scope{ScopeNetworkInterface, ScopeScaleSetVM}, Code: "NetworkInterfaceUsesMultipleLoadBalancersOfSameType", CodeTag: Observed, Tag: Observed,
			Requires: "A network interface is in pools of one public load balancer and of one internal one at most; one without frontends is neither (assumed).",
			Source:   "seanknox/aztack#3", check: oneBalancerAKind,
		},
		{
			Name: "scale-set-one-load-balancer-a-kind", On: KindPut, Scopes: []Scope{ScopeScaleSet}, Code: "VMScaleSetCannotUseMultipleLoadBalancersOfSameType", CodeTag: Observed, Tag: Observed,
			Requires: "The same of an interface in the model of a scale set.",
			Source:   "error bodies in public issues", check: oneBalancerAKind,
		},
		{
			Name: "nic-sku", On: KindPut, Scopes: only, Code: "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed", CodeTag: Documented, Tag: Documented,
			Requires: "The load balancers and public IP addresses of a network interface have one SKU.",
			Source:   "common load balancer deployment errors page; microsoft/MCW-SAP-NetWeaver-on-Azure#15", check: oneSku,
		},
		{
			Name: "scale-set-sku", On: KindPut, Scopes: []Scope{ScopeScaleSet, ScopeScaleSetVM},
			Code: "DifferentSkuLoadBalancerAndPublicIPAddressNotAllowedInVMSS", CodeTag: Documented, Tag: Documented,
			Requires: "The load balancers of an interface of a scale set have one SKU.",
			Source:   "common load balancer deployment errors page", check: oneSku,
		},
		{
			Name: "nic-location", On: KindPut, Scopes: onlyMembers, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Observed,
			Requires: "The load balancers of a network interface are in its location.",
			Source:   "Azure/azure-service-operator, the words of the answer to a dangling reference", check: oneLocation,
		},
		{
			Name: "nic-not-in-use", On: KindDelete, Scopes: only, Code: "NicInUse", CodeTag: Observed, Tag: Observed,
			Requires: "No virtual machine has the network interface.",
			Source:   "recordings of Azure/azure-cli", check: nicUnused,
		},
	}
}

// onlyMembers are the scopes with IP configurations that can join pools.
var onlyMembers = []Scope{ScopeNetworkInterface, ScopeScaleSet, ScopeScaleSetVM}

// membership is a pool that an IP configuration is in.
type membership struct {
	config   string // ID of the IP configuration
	nic      string // of the network interface; a scale set has several
	pool     resourceID
	balancer *aggregate
}

// joins returns the pools of a subject's IP configurations.
func (s *subject) joins() []membership {
	var all []membership
	for id, props := range s.configsOf {
		nic, _, _ := strings.Cut(id, "/"+ipConfigKind.collection+"/")
		for _, ref := range objects(props, nicPools) {
			pool, err := parseID(text(ref, "id"))
			if agg := s.e.aggregates[pool.poolRoot()]; err == nil && agg != nil {
				all = append(all, membership{id, nic, pool, agg})
			}
		}
	}
	return all
}

// poolRoot returns the key of a pool's load balancer; "" for other resources.
func (r resourceID) poolRoot() string {
	if r.child != poolKind {
		return ""
	}
	return r.rootKey()
}

func nicPoolNotMixed(s *subject) string {
	for _, m := range s.joins() {
		body := findChild(m.balancer.body, m.pool)
		if slices.ContainsFunc(objects(properties(body), addresses), ipBased) {
			return fmt.Sprintf("IP configuration %s cannot join backend address pool %s, which holds IP addresses.", m.config, m.pool)
		}
	}
	return ""
}

// pairs calls f with each pair of load balancers of the same network interface, until f returns a
// violation.
func (s *subject) pairs(f func(nic string, a, b *aggregate) string) string {
	all := s.joins()
	for i, m := range all {
		for _, other := range all[:i] {
			if other.nic != m.nic || other.balancer == m.balancer {
				continue
			}
			if wrong := f(m.nic, other.balancer, m.balancer); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func oneBalancerAKind(s *subject) string {
	return s.pairs(func(nic string, a, b *aggregate) string {
		for _, agg := range []*aggregate{a, b} {
			if len(objects(properties(agg.body), frontends)) == 0 {
				return ""
			}
		}
		if isInternal(a.body) != isInternal(b.body) {
			return ""
		}
		return fmt.Sprintf("Network interface %s references more than one load balancer of the same type (internal or public): %s, %s. Only one load balancer of each type is allowed.", nic, a.id, b.id)
	})
}

func oneSku(s *subject) string {
	differ := func(a, b *aggregate) string {
		if sameName(sku(a.body), sku(b.body)) {
			return ""
		}
		return fmt.Sprintf("Different basic sku and standard sku load balancer or public Ip resources in availability set is not allowed %s and %s.", a.id, b.id)
	}
	if wrong := s.pairs(func(_ string, a, b *aggregate) string { return differ(a, b) }); wrong != "" {
		return wrong
	}
	all := s.joins()
	for _, props := range s.configsOf {
		if pip := s.e.aggregates[reference(props, "publicIPAddress")]; pip != nil && len(all) > 0 {
			if wrong := differ(all[0].balancer, pip); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func oneLocation(s *subject) string {
	for _, m := range s.joins() {
		if at, there := location(s.body), location(m.balancer.body); at != "" && there != "" && at != there {
			return dangling(m.pool.String(), m.config)
		}
	}
	return ""
}

// location returns a resource's location, normalized.
func location(body fields) string {
	return strings.ToLower(strings.ReplaceAll(text(body, "location"), " ", ""))
}

func nicUnused(s *subject) string {
	if by := s.e.index().nic[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", s.self, strings.Join(by, ", "))
	}
	return ""
}
