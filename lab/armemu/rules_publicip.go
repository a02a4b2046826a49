// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"regexp"
)

var (
	onlyPublicIPs = []Scope{ScopePublicIP}
	onlyPrefixes  = []Scope{ScopePublicIPPrefix}
)

// maxPublicIPs limits the public IP addresses per subscription and region. Azure's limit depends on
// the subscription.
const maxPublicIPs = 1000

func publicIPRules() []Rule {
	return []Rule{
		{
			Name: "public-ip-static", On: KindPut, Scopes: onlyPublicIPs, Code: "StandardSkuPublicIPAddressesMustBeStatic", CodeTag: Observed, Tag: Documented,
			Requires: "A Standard public IP address has allocation method Static; no SKU means Basic, no method Dynamic.",
			Source:   "public IP addresses page; code from MicrosoftDocs/azure-docs#42889", check: standardIsStatic,
		},
		{
			Name: "public-ip-idle-timeout", On: KindPut, Scopes: onlyPublicIPs, Code: "PublicIPIdleTimeoutIsOutOfRange", CodeTag: Observed, Tag: Observed,
			Requires: "The idle timeout of a public IP address is 4 to 30 minutes.",
			Source:   recorded, check: publicIPIdleTimeout,
		},
		{
			Name: "domain-name-label", On: KindPut, Scopes: onlyPublicIPs, Code: "InvalidDomainNameLabel", CodeTag: Observed, Tag: Observed,
			Requires: "A domain name label matches `^[a-z][a-z0-9-]{1,61}[a-z0-9]$`.",
			Source:   recorded, check: validLabel,
		},
		{
			Name: "global-needs-standard", On: KindPut, Scopes: onlyPublicIPs, Code: "GlobalPublicIPAddressNotSupportedForBasicPublicIpAddress", CodeTag: Observed, Tag: Observed,
			Requires: "A public IP address whose SKU has the tier Global is Standard.",
			Source:   "recordings of Azure/azure-cli", check: globalIsStandard,
		},
		{
			Name: "domain-name-free", On: KindPut, Scopes: onlyPublicIPs, Code: "DnsRecordInUse", CodeTag: Documented, Tag: Documented,
			Requires: "No other public IP address of the location, in any subscription, has the domain name label.",
			Source:   "common deployment errors page; body from Azure/azure-quickstart-templates#4978", check: labelFree,
		},
		{
			Name: "prefix-exists", On: KindPut, Scopes: onlyPublicIPs, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Documented,
			Requires: "The public IP prefix that a public IP address names exists.",
			Source:   "common deployment errors page", check: prefixExists,
		},
		{
			Name: "prefix-fits", On: KindPut, Scopes: onlyPublicIPs, Code: "PublicIPAddressAndPrefixDoNotMatch", CodeTag: Assumed, Tag: Documented,
			Requires: "A public IP address from a prefix is Standard, and of the prefix's family.",
			Source:   "public IP prefix page", check: prefixFits,
		},
		{
			Name: "prefix-has-room", On: KindPut, Scopes: onlyPublicIPs, Code: "PublicIpPrefixOutOfIpAddresses", CodeTag: Observed, Tag: Documented,
			Requires: "The prefix has a free address.",
			Source:   "public IP prefix page; code from public troubleshooting notes, and documented for scale sets with the suffix ForVMScaleSet", check: prefixHasRoom,
		},
		{
			Name: "public-ip-limit", On: KindPut, Scopes: onlyPublicIPs, Code: "PublicIPCountLimitReached", CodeTag: Documented, Tag: Assumed,
			Requires: fmt.Sprintf("A subscription has at most %d public IP addresses in a region; the real number depends on the subscription.", maxPublicIPs),
			Source:   "AKS troubleshooting pages", check: publicIPLimit,
		},
		{
			Name: "standard-public-ip-limit", On: KindPut, Scopes: onlyPublicIPs, Code: "IPv4StandardSkuPublicIpCountLimitReached", CodeTag: Observed, Tag: Assumed,
			Requires: "A subscription has at most so many Standard public IP addresses of IPv4 in a region as its usages say; one that becomes Standard counts.",
			Source:   "public logs of deployments", check: standardIPLimit,
		},
		{
			Name: "public-ip-not-in-use", On: KindDelete, Scopes: onlyPublicIPs, Code: "PublicIPAddressCannotBeDeleted", CodeTag: Observed, Tag: Observed,
			Requires: "No frontend and no network interface uses the public IP address.",
			Source:   "recordings of Azure/azure-cli; hashicorp/terraform-provider-azurerm#2566", check: publicIPUnused,
		},
	}
}

func standardIsStatic(s *subject) string {
	if sameName(sku(s.body), "Standard") && !isStatic(properties(s.body)) {
		return fmt.Sprintf("Standard sku publicIp %s must have AllocationMethod set to Static.", s.self)
	}
	return ""
}

func publicIPIdleTimeout(s *subject) string {
	if n, ok := number(properties(s.body), "idleTimeoutInMinutes"); ok && (n < 4 || n > 30) {
		return fmt.Sprintf("Resource %s has invalid value of IdleTimeoutInMinutes (%d). The value must be between 4 and 30.", s.self, n)
	}
	return ""
}

func globalIsStandard(s *subject) string {
	if sameName(text(object(s.body, "sku"), "tier"), "Global") && !sameName(sku(s.body), "Standard") {
		return fmt.Sprintf("Global tier is not supported for the Basic sku publicIp %s.", s.self)
	}
	return ""
}

var validLabels = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

func validLabel(s *subject) string {
	label := text(object(properties(s.body), "dnsSettings"), "domainNameLabel")
	if label != "" && !validLabels.MatchString(label) {
		return fmt.Sprintf("The domain name label %s is invalid. It must conform to the following regular expression: %s.", label, validLabels)
	}
	return ""
}

func labelFree(s *subject) string {
	name := fqdn(s.body)
	if name == "" {
		return ""
	}
	for _, agg := range s.e.aggregates {
		if agg.id.root == publicIPKind && agg.id.key() != s.self.key() && fqdn(agg.body) == name {
			return fmt.Sprintf("DNS record %s is already used by another public IP.", name)
		}
	}
	return ""
}

func prefixExists(s *subject) string {
	if id := text(object(properties(s.body), "publicIPPrefix"), "id"); id != "" && !s.e.exists(id) {
		return dangling(id, s.self.String())
	}
	return ""
}

func prefixFits(s *subject) string {
	props := properties(s.body)
	agg := s.e.aggregates[reference(props, "publicIPPrefix")]
	if agg == nil {
		return ""
	}
	of := text(properties(agg.body), "publicIPAddressVersion")
	if !sameName(sku(s.body), "Standard") || family(of) != family(text(props, "publicIPAddressVersion")) {
		return fmt.Sprintf("Public IP address %s (%s, %s) does not match public IP prefix %s.", s.self, sku(s.body), text(props, "publicIPAddressVersion"), agg.id)
	}
	return ""
}

func prefixHasRoom(s *subject) string {
	props := properties(s.body)
	if reference(props, "publicIPPrefix") == "" || text(props, "ipAddress") != "" {
		return ""
	}
	return fmt.Sprintf("IpPrefix %s has no public ip left for %s.", text(object(props, "publicIPPrefix"), "id"), s.self)
}

func publicIPLimit(s *subject) string {
	if s.before != nil {
		return ""
	}
	n := s.countInRegion(publicIPKind)
	if n >= maxPublicIPs {
		return fmt.Sprintf("Cannot create more than %d public IP addresses for this subscription in this region.", n)
	}
	return ""
}

func standardIPLimit(s *subject) string {
	name, most := usedAs(s.body), cmp.Or(s.e.opts.MostStandardIPs, maxPublicIPs)
	if name != standardIPv4 || s.before != nil && usedAs(s.before) == name {
		return ""
	}
	if s.e.used(s.self.subscription, text(s.body, "location"))[name] >= most {
		return fmt.Sprintf("Cannot create more than %d IPv4 Standard SKU public IP addresses for this subscription in this region.", most)
	}
	return ""
}

// countInRegion counts resources in the subject's subscription and location.
func (s *subject) countInRegion(k *rootKind) int {
	n := 0
	for _, agg := range s.e.aggregates {
		if agg.id.root == k && sameName(agg.id.subscription, s.self.subscription) &&
			sameName(text(agg.body, "location"), text(s.body, "location")) {
			n++
		}
	}
	return n
}

func publicIPUnused(s *subject) string {
	if by := s.e.index().publicIP[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Public IP address %s can not be deleted since it is still allocated to resource %s. In order to delete the public IP, disassociate/detach the Public IP address from the resource. To learn how to do this, see aka.ms/deletepublicip.", s.self, by[0])
	}
	return ""
}

// publicIPFixedRules returns the rules about immutable properties.
func publicIPFixedRules() []Rule {
	return []Rule{
		{
			Name: "public-ip-sku-fixed", On: KindPut, Scopes: onlyPublicIPs, Code: "SkuCannotBeChangedOnUpdate", CodeTag: Observed, Tag: Documented,
			Requires: "The SKU of a public IP address changes from Basic to Standard only, and only while it is Static and nothing uses it.",
			Source:   "public IP upgrade page; code from Azure/azure-cli#27806, #6743", check: publicIPSkuFixed,
		},
		{
			Name: "public-ip-stays-static", On: KindPut, Scopes: onlyPublicIPs, Code: "PublicIPAddressInUseCannotUpdateToDynamic", CodeTag: Observed, Tag: Observed,
			Requires: "A Static public IP address that is in use does not become Dynamic.",
			Source:   "error bodies in public notes", check: staysStatic,
		},
		{
			Name: "public-ip-family-fixed", On: KindPut, Scopes: onlyPublicIPs, Code: "PropertyChangeNotAllowed", CodeTag: Assumed, Tag: Documented,
			Requires: "The family (`publicIPAddressVersion`) of a public IP address stays what it is.",
			Source:   "API description; the code is the documented one for changes of fixed properties", check: familyFixed,
		},
		{
			Name: "public-ip-tags-fixed", On: KindPut, Scopes: onlyPublicIPs, Code: "PropertyChangeNotAllowed", CodeTag: Assumed, Tag: Observed,
			Requires: "The IP tags of a public IP address stay what they are.",
			Source:   "Azure/terraform-azurerm-avm-ptn-alz-connectivity-hub-and-spoke-vnet#150", check: ipTagsFixed,
		},
		{
			Name: "public-ip-prefix-fixed", On: KindPut, Scopes: onlyPublicIPs, Code: "PropertyChangeNotAllowed", CodeTag: Assumed, Tag: Observed,
			Requires: "The prefix of a public IP address stays what it is.",
			Source:   "AviatrixSystems/terraform-provider-aviatrix#1918", check: prefixFixed,
		},
		{
			Name: "zones-fixed", On: KindPut, Scopes: []Scope{ScopePublicIP, ScopePublicIPPrefix}, Code: "ResourceAvailabilityZonesCannotBeModified", CodeTag: Observed, Tag: Observed,
			Requires: "The zones of a public IP address or prefix stay what they are.",
			Source:   "Azure/azure-cli#17975", check: zonesFixed,
		},
	}
}

func publicIPSkuFixed(s *subject) string {
	if s.before == nil || sameName(sku(s.before), sku(s.body)) {
		return ""
	}
	if sameName(sku(s.body), "Standard") && isStatic(properties(s.before)) && len(s.e.index().publicIP[s.self.key()]) == 0 {
		return ""
	}
	return fmt.Sprintf("The SKU of public IP address %s cannot change from %s to %s.", s.self, sku(s.before), sku(s.body))
}

func staysStatic(s *subject) string {
	by := s.e.index().publicIP[s.self.key()]
	if isStatic(properties(s.before)) && !isStatic(properties(s.body)) && len(by) > 0 {
		return fmt.Sprintf("Public IP address %s is in use by ipconfig %s and cannot be updated to dynamic allocation.", s.self, by[0])
	}
	return ""
}

func familyFixed(s *subject) string {
	was, is := text(properties(s.before), "publicIPAddressVersion"), text(properties(s.body), "publicIPAddressVersion")
	if s.before != nil && family(was) != family(is) {
		return fmt.Sprintf("Changing property 'publicIPAddressVersion' of resource %s from %q to %q is not allowed.", s.self, was, is)
	}
	return ""
}

func ipTagsFixed(s *subject) string {
	if s.before != nil && !sameList(properties(s.before)["ipTags"], properties(s.body)["ipTags"]) {
		return fmt.Sprintf("Changing property 'ipTags' of resource %s is not allowed.", s.self)
	}
	return ""
}

func prefixFixed(s *subject) string {
	if s.before != nil && reference(properties(s.before), "publicIPPrefix") != reference(properties(s.body), "publicIPPrefix") {
		return fmt.Sprintf("Changing property 'publicIPPrefix' of resource %s is not allowed.", s.self)
	}
	return ""
}

func zonesFixed(s *subject) string {
	if s.before == nil {
		return ""
	}
	return zonesChanged(s.self, s.before, s.body)
}

func zonesChanged(id resourceID, before, after fields) string {
	if sameList(before["zones"], after["zones"]) {
		return ""
	}
	return fmt.Sprintf("Resource %s has an existing availability zone constraint %v and the request has availability zone constraint %v, which do not match. Zones cannot be added/updated/removed once the resource is created.",
		id, words(before["zones"]), words(after["zones"]))
}
