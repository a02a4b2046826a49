// SPDX-License-Identifier: Apache-2.0

package armemu

import "fmt"

func publicIPPrefixRules() []Rule {
	return []Rule{
		{
			Name: "prefix-length", On: KindPut, Scopes: prefixScopes, Code: "InvalidPublicIPPrefixLength", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A prefix is Standard, and its length is 28 to 31 (IPv4) or 124 to 127 (IPv6).",
			Source:   "public IP prefix page", check: prefixLength,
		},
		{
			Name: "prefix-length-fixed", On: KindPut, Scopes: prefixScopes, Code: "PropertyChangeNotAllowed", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "Length and family of a prefix are fixed.",
			Source:   "public IP prefix page", check: checkPrefixLengthChange,
		},
		{
			Name: "prefix-not-in-use", On: KindDelete, Scopes: prefixScopes, Code: "InUsePublicIpPrefixCannotBeDeleted", CodeCertainty: Observed, Certainty: Documented,
			Requires: "No public IP and no frontend is from the prefix.",
			Source:   "public IP prefix page; code from public sources that handle it", check: checkPrefixInUse,
		},
	}
}

func prefixLength(s *validationTarget) string {
	props := propertyFields(s.body)
	shortest, longest := 28, 31
	if ipFamily(stringField(props, "publicIPAddressVersion")) == 1 {
		shortest, longest = 124, 127
	}
	n, _ := intField(props, "prefixLength")
	if n < shortest || n > longest || !sameName(skuName(s.body), "Standard") {
		return fmt.Sprintf("Public IP prefix %s has SKU %s and length %d: use Standard and %d to %d.", s.self, skuName(s.body), n, shortest, longest)
	}
	return ""
}

func checkPrefixLengthChange(s *validationTarget) string {
	before, got := propertyFields(s.before), propertyFields(s.body)
	if s.before == nil || before["prefixLength"] == got["prefixLength"] &&
		ipFamily(stringField(before, "publicIPAddressVersion")) == ipFamily(stringField(got, "publicIPAddressVersion")) {
		return ""
	}
	return fmt.Sprintf("Changing length or family of public IP prefix %s is not allowed.", s.self)
}

func checkPrefixInUse(s *validationTarget) string {
	if by := s.e.references().prefix[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Public IP prefix %s is in use by %s and cannot be deleted.", s.self, by[0])
	}
	return ""
}
