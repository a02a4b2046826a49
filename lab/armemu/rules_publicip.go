// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"regexp"

	"weir.dev/weir/internal/lb/behavior"
)

var (
	publicIPScopes = []Scope{ScopePublicIP}
	prefixScopes   = []Scope{ScopePublicIPPrefix}
)

// maxPublicIPs depends on the subscription in Azure.
const maxPublicIPs = 1000

func publicIPRules() []Rule {
	return []Rule{
		{
			Name: "public-ip-static", On: KindPut, Scopes: publicIPScopes, Code: "StandardSkuPublicIPAddressesMustBeStatic", CodeCertainty: Observed, Certainty: Documented,
			Requires: "A Standard public IP has the allocation method Static; no SKU means Basic, no method Dynamic.",
			Source:   "public IP addresses page; code from MicrosoftDocs/azure-docs#42889", check: checkStaticAllocation,
		},
		{
			Name: "public-ip-idle-timeout", On: KindPut, Scopes: publicIPScopes, Code: "PublicIPIdleTimeoutIsOutOfRange", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The idle timeout of a public IP is 4 to 30 minutes.",
			Source:   recordedSource, check: publicIPIdleTimeout,
		},
		{
			Name: "domain-name-label", On: KindPut, Scopes: publicIPScopes, Code: "InvalidDomainNameLabel", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A domain name label matches `^[a-z][a-z0-9-]{1,61}[a-z0-9]$`.",
			Source:   recordedSource, check: checkDNSLabel,
		},
		{
			Name: "global-needs-standard", On: KindPut, Scopes: publicIPScopes, Code: "GlobalPublicIPAddressNotSupportedForBasicPublicIpAddress", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A public IP with a SKU of tier Global is Standard.",
			Source:   "azure-cli recordings", check: checkGlobalTier,
		},
		{
			Name: "domain-name-free", On: KindPut, Scopes: publicIPScopes, Code: "DnsRecordInUse", CodeCertainty: Documented, Certainty: Documented,
			Requires: "No other public IP of the location, in any subscription, has the domain name label; with `dnsLabelBothFamilies` taken, one of the other family in the resource group may.",
			Source:   "common deployment errors page; body from Azure/azure-quickstart-templates#4978", check: checkDNSLabelInUse,
		},
		{
			Name: "prefix-exists", On: KindPut, Scopes: publicIPScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The public IP prefix that a public IP names exists.",
			Source:   "common deployment errors page", check: prefixExists,
		},
		{
			Name: "prefix-fits", On: KindPut, Scopes: publicIPScopes, Code: "PublicIPAddressAndPrefixDoNotMatch", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A public IP from a prefix is Standard, and of the prefix's family.",
			Source:   "public IP prefix page", check: checkPrefixMatch,
		},
		{
			Name: "prefix-has-room", On: KindPut, Scopes: publicIPScopes, Code: "PublicIpPrefixOutOfIpAddresses", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The prefix has a free address.",
			Source:   "public IP prefix page; code from public troubleshooting notes, and documented for scale sets with the suffix ForVMScaleSet", check: checkPrefixCapacity,
		},
		{
			Name: "public-ip-limit", On: KindPut, Scopes: publicIPScopes, Code: "PublicIPCountLimitReached", CodeCertainty: Documented, Certainty: Assumed,
			Requires: fmt.Sprintf("A subscription has at most %d public IPs in a region; the real number depends on the subscription.", maxPublicIPs),
			Source:   "AKS troubleshooting pages", check: publicIPLimit,
		},
		{
			Name: "standard-public-ip-limit", On: KindPut, Scopes: publicIPScopes, Code: "IPv4StandardSkuPublicIpCountLimitReached", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "A subscription has at most so many Standard public IPs of IPv4 in a region as its usages say; one that becomes Standard counts.",
			Source:   "public logs of deployments", check: standardIPLimit,
		},
		{
			Name: "public-ip-not-in-use", On: KindDelete, Scopes: publicIPScopes, Code: "PublicIPAddressCannotBeDeleted", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No frontend and no NIC uses the public IP.",
			Source:   "azure-cli recordings; hashicorp/terraform-provider-azurerm#2566", check: checkPublicIPInUse,
		},
	}
}

func checkStaticAllocation(s *validationTarget) string {
	if sameName(skuName(s.body), "Standard") && !isStatic(propertyFields(s.body)) {
		return fmt.Sprintf("Standard sku publicIp %s must have AllocationMethod set to Static.", s.self)
	}
	return ""
}

func publicIPIdleTimeout(s *validationTarget) string {
	if n, ok := intField(propertyFields(s.body), "idleTimeoutInMinutes"); ok && (n < 4 || n > 30) {
		return fmt.Sprintf("Resource %s has invalid value of IdleTimeoutInMinutes (%d). The value must be between 4 and 30.", s.self, n)
	}
	return ""
}

func checkGlobalTier(s *validationTarget) string {
	if sameName(stringField(objectField(s.body, "sku"), "tier"), "Global") && !sameName(skuName(s.body), "Standard") {
		return fmt.Sprintf("Global tier is not supported for the Basic sku publicIp %s.", s.self)
	}
	return ""
}

var dnsLabelPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

func checkDNSLabel(s *validationTarget) string {
	label := stringField(objectField(propertyFields(s.body), "dnsSettings"), "domainNameLabel")
	if label != "" && !dnsLabelPattern.MatchString(label) {
		return fmt.Sprintf("The domain name label %s is invalid. It must conform to the following regular expression: %s.", label, dnsLabelPattern)
	}
	return ""
}

// mayShareLabel: for how far beyond one Service Azure would share a label, there is no source.
func (v *validationTarget) mayShareLabel(other *aggregate) bool {
	version := func(body fields) int { return ipFamily(stringField(propertyFields(body), "publicIPAddressVersion")) }
	return v.e.opts.Behavior.DNSLabelFamilies == behavior.Accepted && version(other.body) != version(v.body) &&
		sameName(other.id.subscription, v.self.subscription) && sameName(other.id.group, v.self.group)
}

func checkDNSLabelInUse(s *validationTarget) string {
	name := dnsName(s.body)
	if name == "" {
		return ""
	}
	for _, agg := range s.e.aggregates {
		if agg.id.root == publicIPKind && agg.id.key() != s.self.key() && dnsName(agg.body) == name && !s.mayShareLabel(agg) {
			return fmt.Sprintf("DNS record %s is already used by another public IP.", name)
		}
	}
	return ""
}

func prefixExists(s *validationTarget) string {
	if id := stringField(objectField(propertyFields(s.body), "publicIPPrefix"), "id"); id != "" && !s.e.resourceExists(id) {
		return missingReference(id, s.self.String())
	}
	return ""
}

func checkPrefixMatch(s *validationTarget) string {
	props := propertyFields(s.body)
	agg := s.e.aggregates[referenceID(props, "publicIPPrefix")]
	if agg == nil {
		return ""
	}
	of := stringField(propertyFields(agg.body), "publicIPAddressVersion")
	if !sameName(skuName(s.body), "Standard") || ipFamily(of) != ipFamily(stringField(props, "publicIPAddressVersion")) {
		return fmt.Sprintf("Public IP address %s (%s, %s) does not match public IP prefix %s.", s.self, skuName(s.body), stringField(props, "publicIPAddressVersion"), agg.id)
	}
	return ""
}

func checkPrefixCapacity(s *validationTarget) string {
	props := propertyFields(s.body)
	if referenceID(props, "publicIPPrefix") == "" || stringField(props, "ipAddress") != "" {
		return ""
	}
	return fmt.Sprintf("IpPrefix %s has no public ip left for %s.", stringField(objectField(props, "publicIPPrefix"), "id"), s.self)
}

func publicIPLimit(s *validationTarget) string {
	if s.before != nil {
		return ""
	}
	n := s.countInRegion(publicIPKind)
	if n >= maxPublicIPs {
		return fmt.Sprintf("Cannot create more than %d public IP addresses for this subscription in this region.", n)
	}
	return ""
}

func standardIPLimit(s *validationTarget) string {
	name, limit := usageName(s.body), cmp.Or(s.e.opts.MaxStandardIPs, maxPublicIPs)
	if name != standardIPv4 || s.before != nil && usageName(s.before) == name {
		return ""
	}
	if s.e.countUsage(s.self.subscription, stringField(s.body, "location"))[name] >= limit {
		return fmt.Sprintf("Cannot create more than %d IPv4 Standard SKU public IP addresses for this subscription in this region.", limit)
	}
	return ""
}

func (v *validationTarget) countInRegion(k *rootKind) int {
	n := 0
	for _, agg := range v.e.aggregates {
		if agg.id.root == k && sameName(agg.id.subscription, v.self.subscription) &&
			sameName(stringField(agg.body, "location"), stringField(v.body, "location")) {
			n++
		}
	}
	return n
}

func checkPublicIPInUse(s *validationTarget) string {
	if by := s.e.references().publicIP[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Public IP address %s can not be deleted since it is still allocated to resource %s. In order to delete the public IP, disassociate/detach the Public IP address from the resource. To learn how to do this, see aka.ms/deletepublicip.", s.self, by[0])
	}
	return ""
}

func publicIPChangeRules() []Rule {
	return []Rule{
		{
			Name: "public-ip-sku-fixed", On: KindPut, Scopes: publicIPScopes, Code: "SkuCannotBeChangedOnUpdate", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The SKU of a public IP changes from Basic to Standard only, and only while it is Static and nothing uses it.",
			Source:   "public IP upgrade page; code from Azure/azure-cli#27806, #6743", check: checkPublicIPSKUChange,
		},
		{
			Name: "public-ip-stays-static", On: KindPut, Scopes: publicIPScopes, Code: "PublicIPAddressInUseCannotUpdateToDynamic", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A Static public IP that is in use does not become Dynamic.",
			Source:   "public notes", check: checkAllocationChange,
		},
		{
			Name: "public-ip-family-fixed", On: KindPut, Scopes: publicIPScopes, Code: "PropertyChangeNotAllowed", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The family (`publicIPAddressVersion`) of a public IP does not change.",
			Source:   "API description; the code is the documented one for changes of fixed properties", check: checkFamilyChange,
		},
		{
			Name: "public-ip-tags-fixed", On: KindPut, Scopes: publicIPScopes, Code: "PropertyChangeNotAllowed", CodeCertainty: Assumed, Certainty: Observed,
			Requires: "The IP tags of a public IP are fixed.",
			Source:   "Azure/terraform-azurerm-avm-ptn-alz-connectivity-hub-and-spoke-vnet#150", check: checkIPTagsChange,
		},
		{
			Name: "public-ip-prefix-fixed", On: KindPut, Scopes: publicIPScopes, Code: "PropertyChangeNotAllowed", CodeCertainty: Assumed, Certainty: Observed,
			Requires: "The prefix of a public IP does not change.",
			Source:   "AviatrixSystems/terraform-provider-aviatrix#1918", check: checkPrefixChange,
		},
		{
			Name: "zones-fixed", On: KindPut, Scopes: []Scope{ScopePublicIP, ScopePublicIPPrefix}, Code: "ResourceAvailabilityZonesCannotBeModified", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The zones of a public IP or prefix are fixed.",
			Source:   "Azure/azure-cli#17975", check: checkZonesChange,
		},
	}
}

func checkPublicIPSKUChange(s *validationTarget) string {
	if s.before == nil || sameName(skuName(s.before), skuName(s.body)) {
		return ""
	}
	if sameName(skuName(s.body), "Standard") && isStatic(propertyFields(s.before)) && len(s.e.references().publicIP[s.self.key()]) == 0 {
		return ""
	}
	return fmt.Sprintf("The SKU of public IP address %s cannot change from %s to %s.", s.self, skuName(s.before), skuName(s.body))
}

func checkAllocationChange(s *validationTarget) string {
	by := s.e.references().publicIP[s.self.key()]
	if isStatic(propertyFields(s.before)) && !isStatic(propertyFields(s.body)) && len(by) > 0 {
		return fmt.Sprintf("Public IP address %s is in use by ipconfig %s and cannot be updated to dynamic allocation.", s.self, by[0])
	}
	return ""
}

func checkFamilyChange(s *validationTarget) string {
	before, got := stringField(propertyFields(s.before), "publicIPAddressVersion"), stringField(propertyFields(s.body), "publicIPAddressVersion")
	if s.before != nil && ipFamily(before) != ipFamily(got) {
		return fmt.Sprintf("Changing property 'publicIPAddressVersion' of resource %s from %q to %q is not allowed.", s.self, before, got)
	}
	return ""
}

func checkIPTagsChange(s *validationTarget) string {
	if s.before != nil && !equalLists(propertyFields(s.before)["ipTags"], propertyFields(s.body)["ipTags"]) {
		return fmt.Sprintf("Changing property 'ipTags' of resource %s is not allowed.", s.self)
	}
	return ""
}

func checkPrefixChange(s *validationTarget) string {
	if s.before != nil && referenceID(propertyFields(s.before), "publicIPPrefix") != referenceID(propertyFields(s.body), "publicIPPrefix") {
		return fmt.Sprintf("Changing property 'publicIPPrefix' of resource %s is not allowed.", s.self)
	}
	return ""
}

func checkZonesChange(s *validationTarget) string {
	if s.before == nil {
		return ""
	}
	return zonesChanged(s.self, s.before, s.body)
}

func zonesChanged(id resourceID, before, after fields) string {
	if equalLists(before["zones"], after["zones"]) {
		return ""
	}
	return fmt.Sprintf("Resource %s has an existing availability zone constraint %v and the request has availability zone constraint %v, which do not match. Zones cannot be added/updated/removed once the resource is created.",
		id, sortedValues(before["zones"]), sortedValues(after["zones"]))
}
