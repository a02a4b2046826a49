// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	securityRules       = "securityRules"
	maxSecurityRules    = 1000
	maxSecurityPrefixes = 4000
	minPriority         = 100
	maxPriority         = 4096
	// in characters
	maxDescriptionLength = 140
)

var securityGroupScopes = []Scope{ScopeSecurityGroup}

func securityGroupRules() []Rule {
	const overview = "network security groups overview"
	each := func(check func(*validationTarget, fields) string) func(*validationTarget) string {
		return func(s *validationTarget) string {
			for _, r := range objectList(propertyFields(s.body), securityRules) {
				if wrong := check(s, r); wrong != "" {
					return wrong
				}
			}
			return ""
		}
	}
	return []Rule{
		{
			Name: "security-rule-limit", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityGroupRuleLimitReached", CodeCertainty: Assumed, Certainty: Documented,
			Requires: fmt.Sprintf("A group has at most %d rules.", maxSecurityRules), Source: "service limits page", check: securityRuleLimit,
		},
		{
			Name: "security-prefix-limit", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityGroupPrefixLimitReached", CodeCertainty: Assumed, Certainty: Documented,
			Requires: fmt.Sprintf("The rules of a group name at most %d addresses and ranges as sources, and as many as destinations.", maxSecurityPrefixes),
			Source:   "service limits page", check: securityPrefixLimit,
		},
		{
			Name: "security-rule-complete", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleInvalid", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A rule has an access, a direction, a protocol, and sources, destinations and ports, each in the field for one or in that for many.",
			Source:   "API description", check: each(securityRuleComplete),
		},
		{
			Name: "security-rule-priority", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleInvalidPriority", CodeCertainty: Observed, Certainty: Observed,
			Requires: fmt.Sprintf("A priority is %d to %d.", minPriority, maxPriority), Source: recordedSource, check: each(securityRulePriority),
		},
		{
			Name: "security-rule-description", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleDescriptionTooLong", CodeCertainty: Observed, Certainty: Observed,
			Requires: fmt.Sprintf("A description has at most %d characters.", maxDescriptionLength), Source: recordedSource, check: each(securityRuleDescription),
		},
		{
			Name: "security-rule-conflict", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleConflict", CodeCertainty: Observed, Certainty: Documented,
			Requires: "No two rules of one direction have the same priority.", Source: overview + "; body from Azure/aks-engine#2106", check: securityRuleConflict,
		},
		{
			Name: "security-rule-prefix", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleInvalidAddressPrefix", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A prefix is an address, a range without bits behind its length, a service tag that Azure knows (here: some of them), or `*`.",
			Source:   recordedSource + "; hashicorp/terraform-provider-azurerm#16761, Azure/azure-powershell#4557", check: each(securityRulePrefix),
		},
		{
			Name: "security-rule-many", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleParameterContainsUnsupportedValue", CodeCertainty: Observed, Certainty: Documented,
			Requires: "The fields for many prefixes take no service tag and no `*`.",
			Source:   overview + "; body from hashicorp/terraform-provider-azurerm#5617", check: each(checkRulePrefixLists),
		},
		{
			Name: "security-rule-family", On: KindPut, Scopes: securityGroupScopes, Code: "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies", CodeCertainty: Observed, Certainty: Observed,
			Requires: "All addresses and ranges of a rule are of one family.", Source: "hashicorp/terraform-provider-azurerm#12534", check: each(securityRuleFamily),
		},
		{
			Name: "security-rule-overlap", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleAddressPrefixesOverlap", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "No two sources, and no two destinations, of a rule overlap.", Source: "none found", check: each(securityRuleOverlap),
		},
		{
			Name: "security-rule-port", On: KindPut, Scopes: securityGroupScopes, Code: "SecurityRuleInvalidPortRange", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A port is 0 to 65535, a range of them, or `*`.", Source: recordedSource, check: each(securityRulePort),
		},
		{
			Name: "security-group-not-in-use", On: KindDelete, Scopes: securityGroupScopes, Code: "InUseNetworkSecurityGroupCannotBeDeleted", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No subnet and no NIC has the group.", Source: "azure-cli recordings", check: checkSecurityGroupInUse,
		},
	}
}

func singleAndList(r fields, key, plural string) (single string, many []string) {
	list, _ := propertyFields(r)[plural].([]any)
	for _, v := range list {
		s, _ := v.(string)
		many = append(many, s)
	}
	return stringField(propertyFields(r), key), many
}

func rulePrefixes(r fields, side string) []string {
	single, many := singleAndList(r, side+"AddressPrefix", side+"AddressPrefixes")
	if single != "" {
		return append([]string{single}, many...)
	}
	return many
}

var ruleSides = []string{"source", "destination"}

func securityRuleLimit(s *validationTarget) string {
	if n := len(objectList(propertyFields(s.body), securityRules)); n > maxSecurityRules {
		return fmt.Sprintf("Network security group %s would have %d rules; %d are allowed.", s.self, n, maxSecurityRules)
	}
	return ""
}

func securityPrefixLimit(s *validationTarget) string {
	for _, side := range ruleSides {
		n := 0
		for _, r := range objectList(propertyFields(s.body), securityRules) {
			for _, p := range rulePrefixes(r, side) {
				if _, ok := parsePrefix(p); ok {
					n++
				}
			}
		}
		if n > maxSecurityPrefixes {
			return fmt.Sprintf("Network security group %s would have %d %s addresses and ranges; %d are allowed.", s.self, n, side, maxSecurityPrefixes)
		}
	}
	return ""
}

func securityRuleComplete(s *validationTarget, r fields) string {
	props := propertyFields(r)
	for key, allowed := range map[string][]string{
		"access": {"Allow", "Deny"}, "direction": {"Inbound", "Outbound"}, "protocol": {"Tcp", "Udp", "Icmp", "Esp", "Ah", "*"},
	} {
		if !slices.ContainsFunc(allowed, func(a string) bool { return sameName(a, stringField(props, key)) }) {
			return fmt.Sprintf("Security rule %s/%s/%s has %s %q.", s.self, securityRules, stringField(r, "name"), key, stringField(props, key))
		}
	}
	for _, side := range ruleSides {
		asgs := len(objectList(props, side+"ApplicationSecurityGroups"))
		for _, kind := range []struct {
			one, many string
			or        int
		}{{side + "AddressPrefix", side + "AddressPrefixes", asgs}, {side + "PortRange", side + "PortRanges", 0}} {
			single, many := singleAndList(r, kind.one, kind.many)
			if n := min(len(single), 1) + min(len(many), 1) + min(kind.or, 1); n != 1 {
				return fmt.Sprintf("Security rule %s/%s/%s has to have either %s or %s.", s.self, securityRules, stringField(r, "name"), kind.one, kind.many)
			}
		}
	}
	return ""
}

func checkSecurityGroupInUse(s *validationTarget) string {
	if by := s.e.references().securityGroup[s.self.key()]; len(by) > 0 {
		return fmt.Sprintf("Network security group %s cannot be deleted because it is in use by the following resources: %s. In order to delete the Network security group, remove the association with the resource(s). To learn how to do this, see aka.ms/deletensg.",
			s.self, strings.Join(by, ", "))
	}
	return ""
}

func securityRuleDescription(_ *validationTarget, r fields) string {
	if n := utf8.RuneCountInString(stringField(propertyFields(r), "description")); n > maxDescriptionLength {
		return fmt.Sprintf("Security rule %s has a description of %d characters. The maximum is %d.", stringField(r, "name"), n, maxDescriptionLength)
	}
	return ""
}

func securityRulePriority(s *validationTarget, r fields) string {
	if n, _ := intField(propertyFields(r), "priority"); n < minPriority || n > maxPriority {
		return fmt.Sprintf("Security rule %s has invalid Priority. Value provided: %d Allowed range %d-%d.", stringField(r, "name"), n, minPriority, maxPriority)
	}
	return ""
}

func securityRuleConflict(s *validationTarget) string {
	seen := map[string]string{}
	for _, r := range objectList(propertyFields(s.body), securityRules) {
		n, _ := intField(propertyFields(r), "priority")
		key := fmt.Sprint(strings.ToLower(stringField(propertyFields(r), "direction")), n)
		if other, taken := seen[key]; taken {
			return fmt.Sprintf("Security rule %s conflicts with rule %s. Rules cannot have the same Priority and Direction. To learn more, see aka.ms/nsgrules.", other, stringField(r, "name"))
		}
		seen[key] = stringField(r, "name")
	}
	return ""
}

// knownTags is a selection of service tags; most accept a region.
var knownTags = regexp.MustCompile(`(?i)^(\*|Internet|VirtualNetwork|AzureLoadBalancer|AzureTrafficManager|(AzureCloud|AzureFrontDoor|ApiManagement|AppService|` +
	`AzureActiveDirectory|AzureContainerRegistry|AzureCosmosDB|AzureDevOps|AzureKeyVault|AzureMonitor|EventHub|GatewayManager|ServiceBus|Sql|Storage)(\.[A-Za-z0-9]+)?)$`)

func parsePrefix(text string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p, err == nil
}

func securityRulePrefix(s *validationTarget, r fields) string {
	for _, side := range ruleSides {
		for _, text := range rulePrefixes(r, side) {
			if p, ok := parsePrefix(text); ok && p == p.Masked() || !ok && knownTags.MatchString(text) {
				continue
			}
			return fmt.Sprintf("Security rule %s/%s/%s has invalid Address prefix. Value provided: %s", s.self, securityRules, r["name"], text)
		}
	}
	return ""
}

func checkRulePrefixLists(s *validationTarget, r fields) string {
	for _, side := range ruleSides {
		_, many := singleAndList(r, side+"AddressPrefix", side+"AddressPrefixes")
		for _, text := range many {
			if _, ok := parsePrefix(text); !ok {
				return fmt.Sprintf("Security rule parameter %sAddressPrefix for rule with Id %s/%s/%s cannot specify existing VIRTUALNETWORK, INTERNET, AZURELOADBALANCER, '*' or system tags. Unsupported value used: %s.",
					side, s.self, securityRules, r["name"], text)
			}
		}
	}
	return ""
}

func securityRuleFamily(_ *validationTarget, r fields) string {
	four, six := false, false
	for _, side := range ruleSides {
		for _, text := range rulePrefixes(r, side) {
			if p, ok := parsePrefix(text); ok {
				four, six = four || p.Addr().Is4(), six || p.Addr().Is6()
			}
		}
	}
	if four && six {
		return fmt.Sprintf("%s contains IP addresses or prefixes that belong to different address families. All IP addresses or prefixes in the resource should belong to the same address family.", r["name"])
	}
	return ""
}

func securityRuleOverlap(_ *validationTarget, r fields) string {
	for _, side := range ruleSides {
		var seen []netip.Prefix
		for _, text := range rulePrefixes(r, side) {
			p, ok := parsePrefix(text)
			if !ok {
				continue
			}
			if at := slices.IndexFunc(seen, p.Overlaps); at >= 0 {
				return fmt.Sprintf("Security rule %s has overlapping %s address prefixes %s and %s.", r["name"], side, seen[at], p)
			}
			seen = append(seen, p)
		}
	}
	return ""
}

func securityRulePort(_ *validationTarget, r fields) string {
	for _, side := range ruleSides {
		single, many := singleAndList(r, side+"PortRange", side+"PortRanges")
		for _, text := range append(many, single) {
			if text == "" || text == "*" {
				continue
			}
			from, to, found := strings.Cut(text, "-")
			if !found {
				to = from
			}
			first, err1 := strconv.ParseUint(from, 10, 16)
			last, err2 := strconv.ParseUint(to, 10, 16)
			if err1 != nil || err2 != nil || first > last {
				return fmt.Sprintf("Security rule %s has invalid Port range. Value provided: %s. Value should be an integer OR integer range with '-' delimiter. Valid range 0-65535.", r["name"], text)
			}
		}
	}
	return ""
}
