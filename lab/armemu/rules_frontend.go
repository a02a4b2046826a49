// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var ipConfigScopes = []Scope{ScopeLoadBalancer, ScopeNetworkInterface}

// allIPConfigScopes includes IP configurations of a model.
var allIPConfigScopes = []Scope{ScopeLoadBalancer, ScopeNetworkInterface, ScopePrivateLinkService, ScopeScaleSet, ScopeScaleSetVM}

var privateIPScopes = []Scope{ScopeLoadBalancer, ScopeNetworkInterface, ScopePrivateLinkService}

func frontendRules() []Rule {
	return []Rule{
		{
			Name: "frontend-has-address", On: KindPut, Scopes: loadBalancerScopes, Code: "FrontendIPConfigHasNoSubnetOrPublicIP", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A frontend that is new has a public IP, a public IP prefix or a subnet.",
			Source:   "ernestio/ernest#480", check: frontendHasAddress,
		},
		{
			Name: "frontend-not-both", On: KindPut, Scopes: loadBalancerScopes, Code: "FrontendIPConfigHasBothSubnetAndPublicIP", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A frontend has a subnet or a public IP, not both.",
			Source:   "hashicorp/terraform-provider-azurerm#1622", check: checkFrontendSource,
		},
		{
			Name: "frontend-zones-public", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A frontend with a public IP has no zones of its own.",
			Source:   "public issues", check: checkFrontendZones,
		},
		{
			Name: "gateway-load-balancer", On: KindPut, Scopes: loadBalancerScopes, Code: "GatewayLoadBalancerReferenceInvalid", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A gateway load balancer is named by a public frontend of SKU Standard, as a frontend of SKU Gateway.",
			Source:   "gateway load balancer overview", check: checkGatewayLoadBalancers,
		},
		{
			Name: "frontend-ipv4", On: KindPut, Scopes: loadBalancerScopes, Code: "AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A load balancer with IPv6 frontends has an IPv4 frontend.",
			Source:   "kubernetes-sigs/cloud-provider-azure#1831", check: hasIPv4Frontend,
		},
		{
			Name: "ip-configuration-references-exist", On: KindPut, Scopes: allIPConfigScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The public IPs, public IP prefixes, subnets and pools that IP configurations name exist.",
			Source:   "common deployment errors page", check: configReferencesExist,
		},
		{
			Name: "public-ip-once", On: KindPut, Scopes: ipConfigScopes, Code: "PublicIPReferencedByMultipleIPConfigs", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No two IP configurations of a resource have the same public IP.",
			Source:   "kubernetes-sigs/cloud-provider-azure#4243", check: publicIPOnce,
		},
		{
			Name: "public-ip-free", On: KindPut, Scopes: ipConfigScopes, Code: "PublicIPAddressInUse", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No other resource uses the public IP.",
			Source:   "public test fixtures", check: checkPublicIPFree,
		},
		{
			Name: "public-ip-sku", On: KindPut, Scopes: loadBalancerScopes, Code: "PublicIPAndLBSkuDoNotMatch", CodeCertainty: Observed, Certainty: Documented,
			Requires: "A public IP has the SKU of the load balancer, and Standard for one of SKU Service (assumed); no SKU means Basic.",
			Source:   "load balancer errors page; code from denniszielke/container_demos#2", check: publicIPSku,
		},
		{
			Name: "frontend-zones-fixed", On: KindPut, Scopes: loadBalancerScopes, Code: "ResourceAvailabilityZonesCannotBeModified", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The zones of a frontend are fixed.",
			Source:   "azure-cli recordings", check: checkFrontendZonesChange,
		},
	}
}

func privateIPRules() []Rule {
	return []Rule{
		{
			Name: "static-private-address", On: KindPut, Scopes: privateIPScopes, Code: "InvalidPrivateIPAddressFormat", CodeCertainty: Observed, Certainty: Observed,
			Requires: "An IP configuration in a subnet with the allocation method Static names a well-formed address (that none at all is answered alike is assumed).",
			Source:   recordedSource, check: staticHasAddress,
		},
		{
			Name: "private-address-in-subnet", On: KindPut, Scopes: privateIPScopes, Code: "PrivateIPAddressNotInSubnet", CodeCertainty: Documented, Certainty: Documented,
			Requires: "A Static private address lies in its subnet.",
			Source:   "common deployment errors page", check: isPrivateIPInSubnet,
		},
		{
			Name: "private-address-not-reserved", On: KindPut, Scopes: privateIPScopes, Code: "PrivateIPAddressInReservedRange", CodeCertainty: Documented, Certainty: Documented,
			Requires: "A Static private address is none of Azure's own: the first four and the last of a subnet.",
			Source:   "common deployment errors page; virtual network FAQ", check: isPrivateIPUsable,
		},
		{
			Name: "private-address-free", On: KindPut, Scopes: privateIPScopes, Code: "PrivateIPAddressIsAllocated", CodeCertainty: Documented, Certainty: Documented,
			Requires: "No other IP configuration has the private address.",
			Source:   "private endpoint page, which shows the answer", check: isPrivateIPFree,
		},
		{
			Name: "subnet-has-room", On: KindPut, Scopes: privateIPScopes, Code: "SubnetIsFull", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The subnet has a free address of its family for every Dynamic IP configuration.",
			Source:   "AKS troubleshooting pages", check: hasSubnetCapacity,
		},
	}
}

func frontendHasAddress(s *validationTarget) string {
	old := newNameIndex(objectList(propertyFields(s.before), frontends))
	for _, c := range objectList(propertyFields(s.body), frontends) {
		// Seeded, which skips validation.
		if before, found := lookUpName(old, stringField(c, "name")); hasFrontendAddress(propertyFields(c)) || found && !hasFrontendAddress(propertyFields(before)) {
			continue
		}
		return fmt.Sprintf("Frontend IP Configuration %s must reference either a Subnet or a Public IP Address.", s.self.withChild(frontendKind, stringField(c, "name")))
	}
	return ""
}

func hasFrontendAddress(props fields) bool {
	return referenceID(props, "publicIPAddress")+referenceID(props, "publicIPPrefix")+referenceID(props, "subnet") != ""
}

func checkFrontendSource(s *validationTarget) string {
	for id, props := range s.ipConfigs {
		if referenceID(props, "subnet") != "" && referenceID(props, "publicIPAddress")+referenceID(props, "publicIPPrefix") != "" {
			return fmt.Sprintf("Frontend IP Configuration %s must not reference both a Subnet and a Public IP Address.", id)
		}
	}
	return ""
}

func checkGatewayLoadBalancers(s *validationTarget) string {
	for _, f := range objectList(propertyFields(s.body), frontends) {
		other := stringField(objectField(propertyFields(f), "gatewayLoadBalancer"), "id")
		if other == "" {
			continue
		}
		id, name, _ := strings.Cut(strings.ToLower(other), "/"+strings.ToLower(frontends)+"/")
		on := s.e.aggregates[id]
		isGateway := on != nil && sameName(skuName(on.body), "Gateway") && slices.ContainsFunc(objectList(propertyFields(on.body), frontends), func(f fields) bool { return sameName(stringField(f, "name"), name) })
		isPublic := referenceID(propertyFields(f), "publicIPAddress")+referenceID(propertyFields(f), "publicIPPrefix") != ""
		if !isGateway || !isPublic || !sameName(skuName(s.body), "Standard") {
			return fmt.Sprintf("Frontend IP configuration %s of load balancer %s cannot reference gateway load balancer %s.", stringField(f, "name"), s.self, other)
		}
	}
	return ""
}

func configReferencesExist(s *validationTarget) string {
	for id, props := range s.ipConfigs {
		named := []string{stringField(objectField(props, "publicIPAddress"), "id"), stringField(objectField(props, "publicIPPrefix"), "id"), stringField(objectField(props, "subnet"), "id")}
		for _, pool := range objectList(props, nicPools) {
			named = append(named, stringField(pool, "id"))
		}
		for _, other := range named {
			if other != "" && !s.e.resourceExists(other) {
				return missingReference(other, id)
			}
		}
	}
	return ""
}

func publicIPOnce(s *validationTarget) string {
	seen := map[string]bool{}
	for _, props := range s.ipConfigs {
		key := referenceID(props, "publicIPAddress")
		if key != "" && seen[key] {
			return fmt.Sprintf("Public ip address %s is referenced by multiple ipconfigs in resource %s.", s.e.aggregates[key].id, s.self)
		}
		seen[key] = true
	}
	return ""
}

func checkPublicIPFree(s *validationTarget) string {
	for id, props := range s.ipConfigs {
		key := referenceID(props, "publicIPAddress")
		if by := excludeOwn(s.e.references().publicIP[key], s.self); len(by) > 0 {
			return fmt.Sprintf("Resource %s is referencing public IP address %s that is already allocated to resource %s.", id, s.e.aggregates[key].id, by[0])
		}
	}
	return ""
}

func publicIPSku(s *validationTarget) string {
	want := skuName(s.body)
	if sameName(want, serviceSKU) {
		want = "Standard"
	}
	for _, props := range s.ipConfigs {
		pip := s.e.aggregates[referenceID(props, "publicIPAddress")]
		if pip != nil && !sameName(skuName(pip.body), want) {
			return fmt.Sprintf("%s sku load balancer %s cannot reference %s sku publicIP %s.", skuName(s.body), s.self, skuName(pip.body), pip.id)
		}
	}
	return ""
}

func checkFrontendZonesChange(s *validationTarget) string {
	old := newNameIndex(objectList(propertyFields(s.before), frontends))
	for _, c := range objectList(propertyFields(s.body), frontends) {
		if before, found := lookUpName(old, stringField(c, "name")); found {
			if wrong := zonesChanged(s.self.withChild(frontendKind, stringField(c, "name")), before, c); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func (v *validationTarget) eachStaticIP(f func(id string, addr netip.Addr, subnet string, p netip.Prefix) string) string {
	for id, props := range v.ipConfigs {
		subnet := referenceID(props, "subnet")
		addr, err := netip.ParseAddr(stringField(props, "privateIPAddress"))
		if subnet == "" || !isStatic(props) || err != nil {
			continue
		}
		if p := v.e.subnetPrefix(subnet, ipVersion(props)); p.IsValid() {
			if wrong := f(id, addr, subnet, p); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func staticHasAddress(s *validationTarget) string {
	for id, props := range s.ipConfigs {
		_, err := netip.ParseAddr(stringField(props, "privateIPAddress"))
		if isStatic(props) && referenceID(props, "subnet") != "" && err != nil {
			return fmt.Sprintf("IP configuration %s has allocation method Static and %q as its private IP address.", id, stringField(props, "privateIPAddress"))
		}
	}
	return ""
}

func isPrivateIPInSubnet(s *validationTarget) string {
	return s.eachStaticIP(func(id string, addr netip.Addr, _ string, p netip.Prefix) string {
		if p.Contains(addr) {
			return ""
		}
		return fmt.Sprintf("Private static IP address %s of %s does not belong to the range of subnet prefix %s.", addr, id, p)
	})
}

func isPrivateIPUsable(s *validationTarget) string {
	return s.eachStaticIP(func(id string, addr netip.Addr, _ string, p netip.Prefix) string {
		if !isReserved(p, addr) {
			return ""
		}
		return fmt.Sprintf("Private static IP address %s of %s falls within reserved IP range of subnet prefix %s.", addr, id, p)
	})
}

func isPrivateIPFree(s *validationTarget) string {
	// Dynamic addresses of this body are already allocated.
	own := map[string]string{}
	for id, props := range s.ipConfigs {
		if !isStatic(props) {
			own[referenceID(props, "subnet")+" "+stringField(props, "privateIPAddress")] = id
		}
	}
	return s.eachStaticIP(func(id string, addr netip.Addr, subnet string, _ netip.Prefix) string {
		key := subnet + " " + addr.String()
		by := own[key]
		if other := s.e.references().privateIPs[subnet][addr]; other != "" && len(excludeOwn([]string{other}, s.self)) > 0 {
			by = other
		}
		own[key] = id
		if by == "" {
			return ""
		}
		return fmt.Sprintf("IP configuration %s is using the private IP address %s which is already allocated to resource %s.", id, addr, by)
	})
}

func hasSubnetCapacity(s *validationTarget) string {
	for id, props := range s.ipConfigs {
		if referenceID(props, "subnet") != "" && !isStatic(props) && stringField(props, "privateIPAddress") == "" {
			return fmt.Sprintf("Subnet %s does not have enough capacity for %s.", stringField(objectField(props, "subnet"), "id"), id)
		}
	}
	return ""
}

func checkFrontendZones(s *validationTarget) string {
	for _, f := range objectList(propertyFields(s.body), frontends) {
		if zones, _ := f["zones"].([]any); len(zones) > 0 && referenceID(propertyFields(f), "publicIPAddress") != "" {
			return fmt.Sprintf("Frontend IP configuration %s of load balancer %s references a public IP address and cannot have zones.", stringField(f, "name"), s.self)
		}
	}
	return ""
}

func (e *Emulator) isIPv6(frontend fields) bool {
	props := propertyFields(frontend)
	for _, key := range []string{"publicIPAddress", "publicIPPrefix"} {
		if agg := e.aggregates[referenceID(props, key)]; agg != nil {
			return ipFamily(stringField(propertyFields(agg.body), "publicIPAddressVersion")) == 1
		}
	}
	return ipVersion(props) == 1
}

func hasIPv4Frontend(s *validationTarget) string {
	list := objectList(propertyFields(s.body), frontends)
	if len(list) == 0 || slices.ContainsFunc(list, func(f fields) bool { return !s.e.isIPv6(f) }) {
		return ""
	}
	return fmt.Sprintf("At least one IPv4 frontend IP configuration is required for the IPv6 frontend IP configurations of load balancer %s.", s.self)
}
