// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// SecurityLimit is the upper bound of a Service's clients if its desired admissions are unknown.
type SecurityLimit struct {
	// Ranges and Tags are the allowed clients; without any, none is admitted.
	Ranges []netip.Prefix
	Tags   []string
	// Private admits private networks only: the Service becomes internal.
	Private bool
	// Own are flows that belong to the Service even at shared addresses. Their Sources are ignored.
	Own []AccessRule
}

// applyLimits replaces the admissions of each share with a Limit by the observed ones, restricted to the
// Limit. decided are the destinations, by meaning, that only these shares retain.
func applyLimits(shares []SecurityShare, seen *parsedGroup) (limits []SecurityShare, decided map[ruleKey]map[netip.Addr]bool) {
	if !slices.ContainsFunc(shares, SecurityShare.isLimited) {
		return shares, nil
	}
	limits, decided = slices.Clone(shares), map[ruleKey]map[netip.Addr]bool{}
	only, rules := exclusiveShares(shares), seen.rulesAt()
	for i, s := range shares {
		if !s.isLimited() {
			continue
		}
		isOnly := func(a netip.Addr) bool { return only[a] == i }
		limits[i].AccessRules = s.Limit.narrowSharedDenials(s.AccessRules, isOnly)
		of := map[int][]netip.Addr{} // destinations by rule
		for _, p := range s.Places {
			for _, a := range p.Addresses {
				for _, at := range rules[a] {
					o := seen.rules[at]
					if isAllowRule(o) && !slices.Contains(of[at], a) && (s.Limit.isOwn(o, a) || len(p.Ports) == 0 && isOnly(a)) {
						of[at] = append(of[at], a)
					}
				}
			}
		}
		for at, o := range seen.rules {
			if len(of[at]) == 0 {
				continue
			}
			addAddresses(decided, o.ruleKey, of[at]...)
			for _, sources := range s.Limit.restrictSources(o.Sources, o.ruleKey.family) {
				limits[i].AccessRules = append(limits[i].AccessRules, AccessRule{
					Access: lb.Allow, Family: o.ruleKey.family, Protocol: o.Protocol, Sources: sources, Destinations: of[at], Ports: o.DestinationPorts,
				})
			}
		}
	}
	return limits, decided
}

// isLimited reports whether only the Limit of a share is known.
func (s SecurityShare) isLimited() bool { return s.Limit != nil && !s.Fixed }

func isAllowRule(o observed) bool { return o.ruleKey.access == lb.Allow }

// exclusiveShares maps each address to the index of its only share; -1 if it is shared.
func exclusiveShares(shares []SecurityShare) map[netip.Addr]int {
	only := map[netip.Addr]int{}
	note := func(i int, addresses []netip.Addr) {
		for _, a := range addresses {
			if other, ok := only[a]; ok && other != i {
				only[a] = -1
			} else {
				only[a] = i
			}
		}
	}
	for i, s := range shares {
		for _, p := range s.Places {
			if len(p.Ports) == 0 {
				note(i, p.Addresses)
			}
		}
		for _, a := range s.AccessRules {
			note(i, a.Destinations)
		}
	}
	return only
}

// rulesAt returns the managed rules of each of the cluster's destinations.
func (p *parsedGroup) rulesAt() map[netip.Addr][]int {
	at := map[netip.Addr][]int{}
	for i, o := range p.rules {
		for _, a := range o.hosts {
			if a.IsValid() {
				at[a] = append(at[a], i)
			}
		}
	}
	return at
}

// narrowSharedDenials replaces denials of all ports at addresses shared with other Services by denials of the Service's
// own ports.
func (l *SecurityLimit) narrowSharedDenials(rules []AccessRule, isOnly func(netip.Addr) bool) []AccessRule {
	var kept []AccessRule
	for _, a := range rules {
		if !slices.Equal(a.Ports, []string{lb.Any}) {
			kept = append(kept, a)
			continue
		}
		for _, own := range l.Own {
			shared := slices.DeleteFunc(slices.Clone(own.Destinations), func(d netip.Addr) bool { return isOnly(d) || !slices.Contains(a.Destinations, d) })
			if len(shared) > 0 {
				narrow := a
				narrow.Protocol, narrow.Ports, narrow.Destinations = own.Protocol, own.Ports, shared
				kept = append(kept, narrow)
			}
		}
		if a.Destinations = slices.DeleteFunc(slices.Clone(a.Destinations), func(d netip.Addr) bool { return !isOnly(d) }); len(a.Destinations) > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

// isOwn reports whether a rule admits only flows of the Service at an address.
func (l *SecurityLimit) isOwn(o observed, a netip.Addr) bool {
	return slices.ContainsFunc(l.Own, func(own AccessRule) bool {
		return strings.EqualFold(own.Protocol, o.Protocol) && !slices.ContainsFunc(o.DestinationPorts, func(text string) bool {
			return !slices.ContainsFunc(own.Ports, func(port string) bool { return normalizePorts(port) == normalizePorts(text) })
		}) && slices.Contains(own.Destinations, a)
	})
}

// restrictSources returns the intersection of sources and Limit, as sources of separate rules. A service tag and a
// range are treated as disjoint.
func (l *SecurityLimit) restrictSources(sources []string, family lb.Family) (names [][]string) {
	var ranges, tags []string
	for _, text := range sources {
		p, err := netip.ParsePrefix(normalizeSource(text))
		switch isPrefix := err == nil; {
		case strings.EqualFold(text, azureSelf), l.Private && strings.EqualFold(text, virtualNetwork):
			tags = append(tags, text)
		case l.Private && isPrefix && isPrivate(p):
			ranges = append(ranges, text)
		case l.Private:
		case text == lb.Any, strings.EqualFold(text, internet), isPrefix && p.Bits() == 0:
			for _, r := range l.Ranges {
				if family.Contains(r.Addr()) {
					ranges = append(ranges, r.String())
				}
			}
			tags = append(tags, l.Tags...)
		case isPrefix:
			for _, r := range l.Ranges {
				if r.Overlaps(p) {
					ranges = append(ranges, narrowerPrefix(r, p).String())
				}
			}
		case slices.ContainsFunc(l.Tags, func(tag string) bool { return strings.EqualFold(tag, text) }):
			tags = append(tags, text)
		}
	}
	if len(ranges) > 0 {
		names = append(names, ranges)
	}
	for _, tag := range tags {
		names = append(names, []string{tag})
	}
	return names
}

func narrowerPrefix(a, b netip.Prefix) netip.Prefix {
	if a.Bits() > b.Bits() {
		return a
	}
	return b
}

var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

func isPrivate(p netip.Prefix) bool {
	return slices.ContainsFunc(privateRanges, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
}
