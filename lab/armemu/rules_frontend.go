// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/netip"
	"slices"
)

// onlyConfigs are the scopes with IP configurations.
var onlyConfigs = []Scope{ScopeLoadBalancer, ScopeNetworkInterface}

// allConfigs are the scopes with IP configurations, including those of a model.
var allConfigs = []Scope{ScopeLoadBalancer, ScopeNetworkInterface, ScopePrivateLinkService, ScopeScaleSet, ScopeScaleSetVM}

// privateConfigs are the scopes with private addresses in IP configurations.
var privateConfigs = []Scope{ScopeLoadBalancer, ScopeNetworkInterface, ScopePrivateLinkService}

func frontendRules() []Rule {
	return []Rule{
		{
			Name: "frontend-has-address", On: KindPut, Scopes: onlyLoadBalancers, Code: "FrontendIPConfigHasNoSubnetOrPublicIP", CodeTag: Observed, Tag: Observed,
			Requires: "A frontend that is new has a public IP address, a public IP prefix or a subnet.",
			Source:   "ernestio/ernest#480", check: frontendHasAddress,
		},
		{
			Name: "frontend-not-both", On: KindPut, Scopes: onlyLoadBalancers, Code: "FrontendIPConfigHasBothSubnetAndPublicIP", CodeTag: Observed, Tag: Observed,
			Requires: "A frontend has a subnet or a public IP address, not both.",
			Source:   "hashicorp/terraform-provider-azurerm#1622", check: frontendNotBoth,
		},
		{
			Name: "frontend-zones-public", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress", CodeTag: Observed, Tag: Observed,
			Requires: "A frontend with a public IP address has no zones of its own.",
			Source:   "error bodies in public issues", check: noZonesBesidePublicIP,
		},
		{
			Name: "frontend-ipv4", On: KindPut, Scopes: onlyLoadBalancers, Code: "AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration", CodeTag: Observed, Tag: Observed,
			Requires: "A load balancer with IPv6 frontends has an IPv4 frontend.",
			Source:   "kubernetes-sigs/cloud-provider-azure#1831", check: hasIPv4Frontend,
		},
		{
			Name: "ip-configuration-references-exist", On: KindPut, Scopes: allConfigs, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Documented,
			Requires: "The public IP addresses, public IP prefixes, subnets and pools that IP configurations name exist.",
			Source:   "common deployment errors page", check: configReferencesExist,
		},
		{
			Name: "public-ip-once", On: KindPut, Scopes: onlyConfigs, Code: "PublicIPReferencedByMultipleIPConfigs", CodeTag: Observed, Tag: Observed,
			Requires: "No two IP configurations of a resource have the same public IP address.",
			Source:   "kubernetes-sigs/cloud-provider-azure#4243", check: publicIPOnce,
		},
		{
			Name: "public-ip-free", On: KindPut, Scopes: onlyConfigs, Code: "PublicIPAddressInUse", CodeTag: Observed, Tag: Observed,
			Requires: "No other resource uses the public IP address.",
			Source:   "recorded answers of the service in public test fixtures", check: publicIPFree,
		},
		{
			Name: "public-ip-sku", On: KindPut, Scopes: onlyLoadBalancers, Code: "PublicIPAndLBSkuDoNotMatch", CodeTag: Observed, Tag: Documented,
			Requires: "A public IP address has the SKU of the load balancer; no SKU means Basic.",
			Source:   "common load balancer deployment errors; code from denniszielke/container_demos#2", check: publicIPSku,
		},
		{
			Name: "frontend-zones-fixed", On: KindPut, Scopes: onlyLoadBalancers, Code: "ResourceAvailabilityZonesCannotBeModified", CodeTag: Observed, Tag: Observed,
			Requires: "The zones of a frontend stay what they are.",
			Source:   "recordings of Azure/azure-cli", check: frontendZonesFixed,
		},
	}
}

func privateIPRules() []Rule {
	return []Rule{
		{
			Name: "static-private-address", On: KindPut, Scopes: privateConfigs, Code: "InvalidPrivateIPAddressFormat", CodeTag: Observed, Tag: Observed,
			Requires: "An IP configuration in a subnet whose allocation method is Static names a well-formed address (that none at all is answered alike is assumed).",
			Source:   recorded, check: staticHasAddress,
		},
		{
			Name: "private-address-in-subnet", On: KindPut, Scopes: privateConfigs, Code: "PrivateIPAddressNotInSubnet", CodeTag: Documented, Tag: Documented,
			Requires: "A Static private address lies in its subnet.",
			Source:   "common deployment errors page", check: privateInSubnet,
		},
		{
			Name: "private-address-not-reserved", On: KindPut, Scopes: privateConfigs, Code: "PrivateIPAddressInReservedRange", CodeTag: Documented, Tag: Documented,
			Requires: "A Static private address is none of Azure's own: the first four and the last of a subnet.",
			Source:   "common deployment errors page; virtual network FAQ", check: privateNotReserved,
		},
		{
			Name: "private-address-free", On: KindPut, Scopes: privateConfigs, Code: "PrivateIPAddressIsAllocated", CodeTag: Documented, Tag: Documented,
			Requires: "No other IP configuration has the private address.",
			Source:   "private endpoint page, which shows the answer", check: privateFree,
		},
		{
			Name: "subnet-has-room", On: KindPut, Scopes: privateConfigs, Code: "SubnetIsFull", CodeTag: Observed, Tag: Documented,
			Requires: "The subnet has a free address of its family for every Dynamic IP configuration.",
			Source:   "AKS troubleshooting pages", check: subnetHasRoom,
		},
	}
}

func frontendHasAddress(s *subject) string {
	old := objects(properties(s.before), frontends)
	for _, c := range objects(properties(s.body), frontends) {
		// A frontend without an address before was seeded, which skips validation.
		if j := indexByName(old, text(c, "name")); addressed(properties(c)) || j >= 0 && !addressed(properties(old[j])) {
			continue
		}
		return fmt.Sprintf("Frontend IP Configuration %s must reference either a Subnet or a Public IP Address.", s.self.withChild(frontendKind, text(c, "name")))
	}
	return ""
}

func addressed(props fields) bool {
	return reference(props, "publicIPAddress")+reference(props, "publicIPPrefix")+reference(props, "subnet") != ""
}

func frontendNotBoth(s *subject) string {
	for id, props := range s.configsOf {
		if reference(props, "subnet") != "" && reference(props, "publicIPAddress")+reference(props, "publicIPPrefix") != "" {
			return fmt.Sprintf("Frontend IP Configuration %s must not reference both a Subnet and a Public IP Address.", id)
		}
	}
	return ""
}

func configReferencesExist(s *subject) string {
	for id, props := range s.configsOf {
		named := []string{text(object(props, "publicIPAddress"), "id"), text(object(props, "publicIPPrefix"), "id"), text(object(props, "subnet"), "id")}
		for _, pool := range objects(props, nicPools) {
			named = append(named, text(pool, "id"))
		}
		for _, other := range named {
			if other != "" && !s.e.exists(other) {
				return dangling(other, id)
			}
		}
	}
	return ""
}

func publicIPOnce(s *subject) string {
	seen := map[string]bool{}
	for _, props := range s.configsOf {
		key := reference(props, "publicIPAddress")
		if key != "" && seen[key] {
			return fmt.Sprintf("Public ip address %s is referenced by multiple ipconfigs in resource %s.", s.e.aggregates[key].id, s.self)
		}
		seen[key] = true
	}
	return ""
}

func publicIPFree(s *subject) string {
	for id, props := range s.configsOf {
		key := reference(props, "publicIPAddress")
		if by := others(s.e.index().publicIP[key], s.self); len(by) > 0 {
			return fmt.Sprintf("Resource %s is referencing public IP address %s that is already allocated to resource %s.", id, s.e.aggregates[key].id, by[0])
		}
	}
	return ""
}

func publicIPSku(s *subject) string {
	for _, props := range s.configsOf {
		pip := s.e.aggregates[reference(props, "publicIPAddress")]
		if pip != nil && !sameName(sku(pip.body), sku(s.body)) {
			return fmt.Sprintf("%s sku load balancer %s cannot reference %s sku publicIP %s.", sku(s.body), s.self, sku(pip.body), pip.id)
		}
	}
	return ""
}

func frontendZonesFixed(s *subject) string {
	old := objects(properties(s.before), frontends)
	for _, c := range objects(properties(s.body), frontends) {
		if j := indexByName(old, text(c, "name")); j >= 0 {
			if wrong := zonesChanged(s.self.withChild(frontendKind, text(c, "name")), old[j], c); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// statics calls f with every Static private address and its subnet's range, until f returns a
// violation.
func (s *subject) statics(f func(id string, addr netip.Addr, subnet string, p netip.Prefix) string) string {
	for id, props := range s.configsOf {
		subnet := reference(props, "subnet")
		addr, err := netip.ParseAddr(text(props, "privateIPAddress"))
		if subnet == "" || !isStatic(props) || err != nil {
			continue
		}
		if p := s.e.subnetPrefix(subnet, versionOf(props)); p.IsValid() {
			if wrong := f(id, addr, subnet, p); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func staticHasAddress(s *subject) string {
	for id, props := range s.configsOf {
		_, err := netip.ParseAddr(text(props, "privateIPAddress"))
		if isStatic(props) && reference(props, "subnet") != "" && err != nil {
			return fmt.Sprintf("IP configuration %s has allocation method Static and %q as its private IP address.", id, text(props, "privateIPAddress"))
		}
	}
	return ""
}

func privateInSubnet(s *subject) string {
	return s.statics(func(id string, addr netip.Addr, _ string, p netip.Prefix) string {
		if p.Contains(addr) {
			return ""
		}
		return fmt.Sprintf("Private static IP address %s of %s does not belong to the range of subnet prefix %s.", addr, id, p)
	})
}

func privateNotReserved(s *subject) string {
	return s.statics(func(id string, addr netip.Addr, _ string, p netip.Prefix) string {
		if !reserved(p, addr) {
			return ""
		}
		return fmt.Sprintf("Private static IP address %s of %s falls within reserved IP range of subnet prefix %s.", addr, id, p)
	})
}

func privateFree(s *subject) string {
	// Dynamic addresses of this body are already allocated.
	own := map[string]string{}
	for id, props := range s.configsOf {
		if !isStatic(props) {
			own[reference(props, "subnet")+" "+text(props, "privateIPAddress")] = id
		}
	}
	return s.statics(func(id string, addr netip.Addr, subnet string, _ netip.Prefix) string {
		key := subnet + " " + addr.String()
		by := own[key]
		if other := s.e.index().private[subnet][addr]; other != "" && len(others([]string{other}, s.self)) > 0 {
			by = other
		}
		own[key] = id
		if by == "" {
			return ""
		}
		return fmt.Sprintf("IP configuration %s is using the private IP address %s which is already allocated to resource %s.", id, addr, by)
	})
}

func subnetHasRoom(s *subject) string {
	for id, props := range s.configsOf {
		if reference(props, "subnet") != "" && !isStatic(props) && text(props, "privateIPAddress") == "" {
			return fmt.Sprintf("Subnet %s does not have enough capacity for %s.", text(object(props, "subnet"), "id"), id)
		}
	}
	return ""
}

func noZonesBesidePublicIP(s *subject) string {
	for _, f := range objects(properties(s.body), frontends) {
		if zones, _ := f["zones"].([]any); len(zones) > 0 && reference(properties(f), "publicIPAddress") != "" {
			return fmt.Sprintf("Frontend IP configuration %s of load balancer %s references a public IP address and cannot have zones.", text(f, "name"), s.self)
		}
	}
	return ""
}

// isIPv6 reports whether a frontend has an IPv6 address.
func (e *Emulator) isIPv6(frontend fields) bool {
	props := properties(frontend)
	for _, key := range []string{"publicIPAddress", "publicIPPrefix"} {
		if agg := e.aggregates[reference(props, key)]; agg != nil {
			return family(text(properties(agg.body), "publicIPAddressVersion")) == 1
		}
	}
	return versionOf(props) == 1
}

func hasIPv4Frontend(s *subject) string {
	list := objects(properties(s.body), frontends)
	if len(list) == 0 || slices.ContainsFunc(list, func(f fields) bool { return !s.e.isIPv6(f) }) {
		return ""
	}
	return fmt.Sprintf("At least one IPv4 frontend IP configuration is required for the IPv6 frontend IP configurations of load balancer %s.", s.self)
}
