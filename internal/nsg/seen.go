// SPDX-License-Identifier: Apache-2.0

package nsg

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// asking is a share with the meanings of its admissions, which are costly to compute.
type asking struct {
	Share
	meanings []meaning
}

func readAll(shares []Share) []asking {
	all := make([]asking, len(shares))
	for i, s := range shares {
		all[i] = asking{s, meaningsOf(s.Admissions)}
	}
	return all
}

// sight is the parsed observed group.
type sight struct {
	rules []observed
	// here are the cluster's destinations in managed rules.
	here map[netip.Addr]bool
}

// observed is a parsed rule.
type observed struct {
	lb.SecurityRule
	managed bool
	meaning meaning
	// hosts are the destinations of the cluster; the zero Addr stands for others.
	hosts []netip.Addr
}

func see(in Input) *sight {
	s := &sight{rules: make([]observed, len(in.Observed)), here: map[netip.Addr]bool{}}
	for i, r := range in.Observed {
		o := observed{SecurityRule: r, managed: managed(r)}
		if o.managed {
			o.meaning, o.hosts = meaningOf(r), make([]netip.Addr, len(r.Destinations))
			for j, text := range r.Destinations {
				if a, host := address(text); host && in.Ours[a] {
					o.hosts[j], s.here[a] = a, true
				}
			}
		}
		s.rules[i] = o
	}
	return s
}

// Hosts returns the single addresses in managed rules, of any cluster.
func Hosts(rules []lb.SecurityRule) map[netip.Addr]bool {
	hosts := map[netip.Addr]bool{}
	for _, r := range rules {
		if !managed(r) {
			continue
		}
		for _, text := range r.Destinations {
			if a, host := address(text); host {
				hosts[a] = true
			}
		}
	}
	return hosts
}

func (s *sight) anyHere(addresses []netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(a netip.Addr) bool { return s.here[a] })
}

// holding are the places without changes, by address.
type holding struct {
	places []Place
	at     map[netip.Addr][]int
}

// add adds places that have existing rules.
func (h *holding) add(places []Place, here map[netip.Addr]bool) {
	for _, p := range places {
		for _, a := range p.Addresses {
			if here[a] {
				h.at[a] = append(h.at[a], len(h.places))
			}
		}
		h.places = append(h.places, p)
	}
}

// of returns a function that reports whether a rule admits flows at a place with an address. It evaluates
// each place once.
func (h *holding) of(r lb.SecurityRule) (covers func(netip.Addr) bool) {
	known := map[int]bool{}
	var spans [][2]int
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(h.at[a], func(i int) bool {
			covered, done := known[i]
			if done {
				return covered
			}
			if spans == nil {
				spans = spansOf(r.DestinationPorts)
			}
			p := h.places[i]
			known[i] = len(p.Ports) == 0 || slices.ContainsFunc(p.Ports, func(n int32) bool { return within(spans, n) })
			return known[i]
		})
	}
}

func spansOf(list []string) [][2]int {
	spans := make([][2]int, 0, len(list))
	for _, text := range list {
		if first, last, ok := span(text); ok {
			spans = append(spans, [2]int{first, last})
		}
	}
	return spans
}

func within(spans [][2]int, port int32) bool {
	return slices.ContainsFunc(spans, func(s [2]int) bool { return s[0] <= int(port) && int(port) <= s[1] })
}

// taken are the used names and priorities.
type taken struct {
	names      map[string]bool
	priorities map[int32]bool
	// next is the next possibly free priority per access.
	next map[lb.Access]int32
}

func newTaken() taken {
	return taken{
		names: map[string]bool{}, priorities: map[int32]bool{},
		next: map[lb.Access]int32{lb.Allow: firstPriority, lb.Deny: lastPriority},
	}
}

// take marks name and priority of a rule as used. Priorities are unique per direction.
func (t *taken) take(r lb.SecurityRule) {
	t.names[strings.ToLower(r.Name)] = true
	if strings.EqualFold(string(r.Direction), string(lb.Inbound)) {
		t.priorities[r.Priority] = true
	}
}

func (t *taken) priority(access lb.Access) int32 {
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
