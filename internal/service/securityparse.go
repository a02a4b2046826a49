// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// parsedShare is a share with the meanings of its admissions, which are costly to compute.
type parsedShare struct {
	SecurityShare
	ruleKeys []ruleKey
}

func parseShares(shares []SecurityShare) []parsedShare {
	items := make([]parsedShare, len(shares))
	for i, s := range shares {
		items[i] = parsedShare{s, ruleKeys(s.AccessRules)}
	}
	return items
}

// parsedGroup is the parsed observed group.
type parsedGroup struct {
	rules []observed
	// managedHosts are the cluster's destinations in managed rules.
	managedHosts map[netip.Addr]bool
}

// observed is a parsed rule.
type observed struct {
	lb.SecurityRule
	managed bool
	ruleKey ruleKey
	// hosts are the destinations of the cluster; the zero Addr stands for others.
	hosts []netip.Addr
}

func parseGroup(in SecurityInput) *parsedGroup {
	s := &parsedGroup{rules: make([]observed, len(in.Observed)), managedHosts: map[netip.Addr]bool{}}
	for i, r := range in.Observed {
		o := observed{SecurityRule: r, managed: isManagedRule(r)}
		if o.managed {
			o.ruleKey, o.hosts = ruleKeyOf(r), make([]netip.Addr, len(r.Destinations))
			for j, text := range r.Destinations {
				if a, host := parseHost(text); host && in.Managed[a] {
					o.hosts[j], s.managedHosts[a] = a, true
				}
			}
		}
		s.rules[i] = o
	}
	return s
}

// ManagedSecurityHosts returns the single addresses in managed rules, of any cluster.
func ManagedSecurityHosts(rules []lb.SecurityRule) map[netip.Addr]bool {
	hosts := map[netip.Addr]bool{}
	for _, r := range rules {
		if !isManagedRule(r) {
			continue
		}
		for _, text := range r.Destinations {
			if a, host := parseHost(text); host {
				hosts[a] = true
			}
		}
	}
	return hosts
}

func (p *parsedGroup) hasManagedHost(addresses []netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(a netip.Addr) bool { return p.managedHosts[a] })
}

// fixedPlaces are the places without changes, by address.
type fixedPlaces struct {
	places    []SecurityPlace
	byAddress map[netip.Addr][]int
}

// addPlaces adds places that have existing rules.
func (f *fixedPlaces) addPlaces(places []SecurityPlace, known map[netip.Addr]bool) {
	for _, p := range places {
		for _, a := range p.Addresses {
			if known[a] {
				f.byAddress[a] = append(f.byAddress[a], len(f.places))
			}
		}
		f.places = append(f.places, p)
	}
}

// coverage returns a function that reports whether a rule admits flows at a place with an address. It evaluates
// each place once.
func (f *fixedPlaces) coverage(r lb.SecurityRule) (covers func(netip.Addr) bool) {
	known := map[int]bool{}
	var spans [][2]int
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(f.byAddress[a], func(i int) bool {
			covered, done := known[i]
			if done {
				return covered
			}
			if spans == nil {
				spans = parsePortRanges(r.DestinationPorts)
			}
			p := f.places[i]
			known[i] = len(p.Ports) == 0 || slices.ContainsFunc(p.Ports, func(n int32) bool { return containsPort(spans, n) })
			return known[i]
		})
	}
}

func parsePortRanges(list []string) [][2]int {
	spans := make([][2]int, 0, len(list))
	for _, text := range list {
		if first, last, ok := parsePortRange(text); ok {
			spans = append(spans, [2]int{first, last})
		}
	}
	return spans
}

func containsPort(spans [][2]int, port int32) bool {
	return slices.ContainsFunc(spans, func(s [2]int) bool { return s[0] <= int(port) && int(port) <= s[1] })
}

// taken are the used names and priorities.
type taken struct {
	names      map[string]bool
	priorities map[int32]bool
	// next is the next possibly free priority per access.
	next map[lb.Access]int32
}

func newUsedNames() taken {
	return taken{
		names: map[string]bool{}, priorities: map[int32]bool{},
		next: map[lb.Access]int32{lb.Allow: firstPriority, lb.Deny: lastPriority},
	}
}

// markUsed marks name and priority of a rule as used. Priorities are unique per direction.
func (t *taken) markUsed(r lb.SecurityRule) {
	t.names[strings.ToLower(r.Name)] = true
	if strings.EqualFold(string(r.Direction), string(lb.Inbound)) {
		t.priorities[r.Priority] = true
	}
}

func (t *taken) nextPriority(access lb.Access) int32 {
	step := int32(1)
	if access == lb.Deny {
		step = -1
	}
	n := t.next[access]
	for t.priorities[n] {
		n += step
	}
	t.next[access] = n
	return n
}
