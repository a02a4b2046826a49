// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// ruleKey is a normalized rule without destinations: rules with the same meaning are merged. Rules are
// identified by meaning, not by name, so those of cloud-provider-azure keep their names.
type ruleKey struct {
	access   lb.Access
	family   lb.Family
	protocol string
	sources  string
	ports    string
}

func (a AccessRule) ruleKey() ruleKey {
	return ruleKey{a.Access, a.Family, strings.ToLower(a.Protocol), normalizeList(a.Sources, normalizeSource), normalizeList(a.Ports, normalizePorts)}
}

// ruleKeys returns the meanings of admissions. With many service tags the admissions of a Service share one
// port list, which is normalized once.
func ruleKeys(rules []AccessRule) []ruleKey {
	list := make([]ruleKey, len(rules))
	for i, a := range rules {
		if i > 0 && sameList(rules[i-1].Ports, a.Ports) {
			list[i] = ruleKey{a.Access, a.Family, strings.ToLower(a.Protocol), normalizeList(a.Sources, normalizeSource), list[i-1].ports}
			continue
		}
		list[i] = a.ruleKey()
	}
	return list
}

// sameList reports whether two slices are identical.
func sameList(a, b []string) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

func ruleKeyOf(r lb.SecurityRule) ruleKey {
	a := AccessRule{Access: lb.Allow, Family: lb.IPv4, Protocol: r.Protocol, Sources: r.Sources, Ports: r.DestinationPorts}
	if strings.EqualFold(string(r.Access), string(lb.Deny)) {
		a.Access = lb.Deny
	}
	for _, d := range r.Destinations {
		if ip, host := parseHost(d); host {
			if lb.IPv6.Contains(ip) {
				a.Family = lb.IPv6
			}
			break
		}
	}
	return a.ruleKey()
}

// isManagedRule reports whether a rule is managed by a cluster. One with unsupported features is foreign, whatever
// its name.
func isManagedRule(r lb.SecurityRule) bool {
	return len(r.Name) >= len(SecurityRulePrefix) && strings.EqualFold(r.Name[:len(SecurityRulePrefix)], SecurityRulePrefix) &&
		strings.EqualFold(string(r.Direction), string(lb.Inbound)) && !r.Grouped &&
		normalizeList(r.SourcePorts, normalizePorts) == lb.Any &&
		slices.ContainsFunc(r.Destinations, func(d string) bool { _, host := parseHost(d); return host })
}

func normalizeList(list []string, spell func(string) string) string {
	texts := make([]string, len(list))
	for i, text := range list {
		texts[i] = spell(text)
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// normalizeSource normalizes a source: 192.0.2.7 becomes 192.0.2.7/32, tags become lower case.
func normalizeSource(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()).String()
	}
	return strings.ToLower(text)
}

// parseHost parses a destination that is a single address.
func parseHost(text string) (netip.Addr, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Addr(), p.IsSingleIP()
	}
	a, err := netip.ParseAddr(text)
	return a, err == nil
}

func normalizePorts(text string) string {
	switch first, last, ok := parsePortRange(text); {
	case !ok:
		return text
	case first == last:
		return strconv.Itoa(first)
	case first == 0 && last == maxPort:
		return lb.Any
	}
	return text
}

const maxPort = 65535

func parsePortRange(text string) (first, last int, ok bool) {
	if text == lb.Any {
		return 0, maxPort, true
	}
	from, to, found := strings.Cut(text, "-")
	if !found {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err1 == nil && err2 == nil
}
