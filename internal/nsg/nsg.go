// SPDX-License-Identifier: Apache-2.0

// Package nsg says what the rules of a network security group have to become, so that the
// flows of all Services get in which people let in, and no others. It is pure.
//
// The managed rules are those whose names begin with Prefix. They may be shared by several
// clusters: in them, a destination is ours if it is one of Input.Ours, and all others stay
// as they are. All other rules are foreign, and never change.
package nsg

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// Prefix is how the names of managed rules begin. It is that of the Azure cloud provider,
// whose rules are taken over as they stand.
const Prefix = "k8s-azure-lb_"

// Kind is that of the changes of a plan.
const Kind plan.Kind = "security rule"

// Admission lets flows to some addresses in, or keeps them out.
type Admission struct {
	Access   lb.Access
	Family   lb.Family
	Protocol string
	// Sources are CIDRs of the family, or one service tag, or lb.Any.
	Sources      []string
	Destinations []netip.Addr
	Ports        []string
}

// Place is where a Service is reached: some addresses, and some ports there; no ports are
// all.
type Place struct {
	Addresses []netip.Addr
	Ports     []int32
}

// Share is what one Service wants of the security group.
type Share struct {
	Service    string
	Admissions []Admission
	// Fixed is true if it is not known what the Service wants: at its places all stays as
	// it is.
	Fixed bool
	// Places are where the Service is reached. What its neighbours want there is added.
	Places []Place
}

// Input is what a plan is made from.
type Input struct {
	// Observed are the rules of the group.
	Observed []lb.SecurityRule
	// Shares are those of all Services of the cluster, in the order in which they are
	// served where there is not enough room.
	Shares []Share
	// Ours are the destinations that no other cluster has.
	Ours map[netip.Addr]bool
}

// Plan is what the group has to become.
type Plan struct {
	// Next are all rules, in the order of the observed ones.
	Next    []lb.SecurityRule
	Changes []plan.Change
	// Refused are the Services for which there is no room, and why. At their places all
	// stays as it is.
	Refused map[string]error
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Merge makes a plan. It is empty when it is made again from what the first one became.
func Merge(in Input) Plan {
	refused := map[string]error{}
	for {
		g := takeOut(in, refused)
		service, err := g.addAll(in.Shares, refused)
		if err == nil {
			next := g.withoutEmpty()
			return Plan{Next: next, Changes: Diff(in.Observed, next), Refused: refused}
		}
		refused[service] = err
	}
}

// group is a security group that is being planned.
type group struct {
	rules []lb.SecurityRule
	// of is the first rule of each meaning.
	of map[meaning]int
	// served are the destinations of each meaning that a managed rule has.
	served map[meaning]map[netip.Addr]bool
	used   room
}

// takeOut starts a plan with what stays: of the managed rules the destinations that are
// not ours, those that are wanted, and those of Services of which nothing is known.
func takeOut(in Input, refused map[string]error) *group {
	g := &group{of: map[meaning]int{}, served: map[meaning]map[netip.Addr]bool{}}
	wanted := map[meaning]map[netip.Addr]bool{}
	held := map[netip.Addr][]Place{}
	for _, s := range in.Shares {
		if s.Fixed || refused[s.Service] != nil {
			for _, p := range s.Places {
				for _, a := range p.Addresses {
					held[a] = append(held[a], p)
				}
			}
			continue
		}
		for _, a := range s.Admissions {
			put(wanted, a.meaning(), a.Destinations...)
		}
	}
	for _, r := range in.Observed {
		if managed(r) {
			m := meaningOf(r)
			r.Destinations = slices.DeleteFunc(slices.Clone(r.Destinations), func(text string) bool {
				a, host := address(text)
				if !host || !in.Ours[a] {
					return false
				}
				again := g.served[m][a]
				put(g.served, m, a)
				return again || !wanted[m][a] && !holds(held[a], r)
			})
			_, another := g.of[m]
			if len(r.Destinations) == 0 && (another || len(wanted[m]) == 0) {
				continue
			}
			if !another {
				g.of[m] = len(g.rules)
			}
		}
		g.rules = append(g.rules, r)
		g.used.add(r)
	}
	return g
}

func put(of map[meaning]map[netip.Addr]bool, m meaning, addresses ...netip.Addr) {
	if of[m] == nil {
		of[m] = map[netip.Addr]bool{}
	}
	for _, a := range addresses {
		of[m][a] = true
	}
}

// holds reports whether a rule admits somebody at one of these places.
func holds(places []Place, r lb.SecurityRule) bool {
	return slices.ContainsFunc(places, func(p Place) bool {
		return len(p.Ports) == 0 || slices.ContainsFunc(p.Ports, func(n int32) bool { return coversPort(r.DestinationPorts, n) })
	})
}

// addAll adds what is missing, one Service after the other. It stops at the first one for
// which there is no room.
func (g *group) addAll(shares []Share, refused map[string]error) (service string, err error) {
	for _, s := range shares {
		if s.Fixed || refused[s.Service] != nil {
			continue
		}
		added := false
		for _, a := range s.Admissions {
			added = g.add(a) || added
		}
		if err := g.used.exceeded(); added && err != nil {
			return s.Service, err
		}
	}
	return "", nil
}

// add gives an admission its destinations in the rule that means it, or else in a new one.
func (g *group) add(a Admission) (added bool) {
	m := a.meaning()
	var missing []netip.Addr
	for _, d := range a.Destinations {
		if !g.served[m][d] {
			missing = append(missing, d)
			put(g.served, m, d)
		}
	}
	if len(missing) == 0 {
		return false
	}
	at, there := g.of[m]
	if !there {
		at = len(g.rules)
		g.of[m] = at
		g.rules = append(g.rules, g.fresh(a))
		g.used.add(g.rules[at])
	}
	r := &g.rules[at]
	r.Destinations = slices.Clone(r.Destinations)
	slices.SortFunc(missing, netip.Addr.Compare)
	for _, d := range missing {
		r.Destinations = append(r.Destinations, d.String())
	}
	g.used.destinations += len(missing)
	return true
}

// withoutEmpty returns the rules but for those that were kept for a destination which
// turned out to be in another rule of the same meaning.
func (g *group) withoutEmpty() []lb.SecurityRule {
	empty := map[string]bool{}
	for _, at := range g.of {
		if r := g.rules[at]; len(r.Destinations) == 0 {
			empty[r.Name] = true
		}
	}
	return slices.DeleteFunc(g.rules, func(r lb.SecurityRule) bool { return empty[r.Name] })
}

// Diff lists the differences of two sets of rules.
func Diff(before, after []lb.SecurityRule) []plan.Change {
	find := func(rules []lb.SecurityRule, name string) int {
		return slices.IndexFunc(rules, func(r lb.SecurityRule) bool { return strings.EqualFold(r.Name, name) })
	}
	var changes []plan.Change
	for _, is := range after {
		switch at := find(before, is.Name); {
		case at < 0:
			changes = append(changes, plan.Change{Action: plan.Add, Kind: Kind, Name: is.Name, Is: is})
		case !before[at].Same(is):
			changes = append(changes, plan.Change{Action: plan.Alter, Kind: Kind, Name: is.Name, Was: before[at], Is: is})
		}
	}
	for _, was := range before {
		if find(after, was.Name) < 0 {
			changes = append(changes, plan.Change{Action: plan.Remove, Kind: Kind, Name: was.Name, Was: was})
		}
	}
	return changes
}
