// SPDX-License-Identifier: Apache-2.0

package armemu

import "fmt"

func publicIPPrefixRules() []Rule {
	return []Rule{
		{
			Name: "prefix-length", On: KindPut, Scopes: onlyPrefixes, Code: "InvalidPublicIPPrefixLength", CodeTag: Assumed, Tag: Documented,
			Requires: "A prefix is Standard, and its length is 28 to 31 (IPv4) or 124 to 127 (IPv6).",
			Source:   "public IP prefix page", check: prefixLength,
		},
		{
			Name: "prefix-length-fixed", On: KindPut, Scopes: onlyPrefixes, Code: "PropertyChangeNotAllowed", CodeTag: Assumed, Tag: Documented,
			Requires: "Length and family of a prefix stay what they are.",
			Source:   "public IP prefix page", check: prefixLengthFixed,
		},
		{
			Name: "prefix-not-in-use", On: KindDelete, Scopes: onlyPrefixes, Code: "InUsePublicIpPrefixCannotBeDeleted", CodeTag: Observed, Tag: Documented,
			Requires: "No public IP address and no frontend is from the prefix.",
			Source:   "public IP prefix page; code from public sources that handle it", check: prefixUnused,
		},
	}
}

func prefixLength(s *subject) string {
	props := properties(s.body)
	shortest, longest := 28, 31
	if family(text(props, "publicIPAddressVersion")) == 1 {
		shortest, longest = 124, 127
	}
	n, _ := number(props, "prefixLength")
	if n < shortest || n > longest || !sameName(sku(s.body), "Standard") {
		return fmt.Sprintf("Public IP prefix %s has SKU %s and length %d: use Standard and %d to %d.", s.self, sku(s.body), n, shortest, longest)
	}
	return ""
}

func prefixLengthFixed(s *subject) string {
	was, is := properties(s.before), properties(s.body)
	if s.before == nil || was["prefixLength"] == is["prefixLength"] &&
		family(text(was, "publicIPAddressVersion")) == family(text(is, "publicIPAddressVersion")) {
		return ""
	}
	return fmt.Sprintf("Changing length or family of public IP prefix %s is not allowed.", s.self)
}

func prefixUnused(s *subject) string {
	if by := s.e.index().prefix[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Public IP prefix %s is in use by %s and cannot be deleted.", s.self, by[0])
	}
	return ""
}
