// SPDX-License-Identifier: Apache-2.0

// Package nsg computes the rules of a network security group from the demands of all Services. It is pure.
//
// Managed rules have names that begin with Prefix. Clusters may share them: the input lists the destinations
// of this cluster, and all others remain unchanged. Rules without Prefix are foreign and never change.
package nsg

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// Prefix is the name prefix of managed rules. It is that of cloud-provider-azure: its rules are taken over
// unchanged.
const Prefix = "k8s-azure-lb_"

// Kind is the kind of the changes.
const Kind plan.Kind = "security rule"

// Admission allows or denies flows to some addresses.
type Admission struct {
	Access   lb.Access
	Family   lb.Family
	Protocol string
	// Sources are CIDRs of the family, a service tag, or lb.Any.
	Sources      []string
	Destinations []netip.Addr
	Ports        []string
}

// Place is a set of addresses and ports where a Service receives flows; no ports means all.
type Place struct {
	Addresses []netip.Addr
	Ports     []int32
}

// Share is the demand of one Service.
type Share struct {
	Service string
	// Namespace is the Service's namespace; empty for no limit.
	Namespace  string
	Admissions []Admission
	// Fixed is true if the demand is unknown: nothing changes at its places.
	Fixed bool
	// Limit is set if only the upper bound of the Service's clients is known. The rules of the share are then
	// denials to add, and what the group admits at Places is restricted to the Limit.
	Limit *Limit
	// Places are where the Service receives flows. Rules of other Services are still added there.
	Places []Place
	// NodePorts are the node ports that receive flows.
	NodePorts []int32
}

// Input is the input of a plan.
type Input struct {
	// Observed are the rules of the group.
	Observed []lb.SecurityRule
	// Shares are those of all Services, in the order of precedence if capacity is short.
	Shares []Share
	// Ours are the destinations that belong to this cluster.
	Ours map[netip.Addr]bool
	// Bounds returns the limits of a namespace; nil means none.
	Bounds func(namespace string) bound.Settings
	// Promised are the claims of Services admitted before their load balancer was written. A limit lowered
	// since then does not reject them, because they would be published without rules.
	Promised map[string]Claim
}

// Plan is the planned state of a group.
type Plan struct {
	// Next are all rules, existing ones in observed order.
	Next    []lb.SecurityRule
	Changes []plan.Change
	// Refused are the rejected Services and the reasons. Nothing changes at their places.
	Refused map[string]error
	// Before and After are the usage of the observed group and of Next.
	Before, After *Usage
}

// Empty reports whether there are no changes.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Merge computes a plan. A plan for the result of a plan is empty.
func Merge(in Input) Plan {
	seen, refused := see(in), map[string]error{}
	var decided map[meaning]map[netip.Addr]bool
	in.Shares, decided = applyLimits(in.Shares, seen)
	shares, holders := readAll(in.Shares), holdersOf(in)
	before := usageOf(seen, holders)
	for {
		g := takeOut(seen, shares, refused, decided)
		g.holders, g.usage, g.bounded = holders, newUsage(), boundedBy(in, before)
		for _, r := range g.rules {
			g.usage.count(r, holders)
		}
		if again := g.addAll(shares, refused); !again {
			next := g.withoutEmpty()
			return Plan{Next: next, Changes: Diff(in.Observed, next), Refused: refused, Before: before, After: g.usage}
		}
	}
}

// group is a security group being planned.
type group struct {
	rules []lb.SecurityRule
	// of is the index of the first rule per meaning.
	of map[meaning]int
	// served are the destinations of managed rules per meaning.
	served map[meaning]map[netip.Addr]bool
	// hollow are the meanings of rules retained only for added destinations.
	hollow map[meaning]bool
	seen   *sight
	used   room
	taken
	holders holders
	// usage is the usage by namespace, including what was added.
	usage   *Usage
	bounded bounded
}

// takeOut starts a plan with what remains: destinations of other clusters, desired ones, and those of unknown
// Services unless decided.
func takeOut(seen *sight, shares []asking, refused map[string]error, decided map[meaning]map[netip.Addr]bool) *group {
	g := &group{
		of: map[meaning]int{}, served: map[meaning]map[netip.Addr]bool{}, hollow: map[meaning]bool{}, seen: seen, taken: newTaken(),
	}
	wanted := map[meaning]map[netip.Addr]bool{}
	held := holding{at: map[netip.Addr][]int{}}
	for _, s := range shares {
		if s.Fixed || refused[s.Service] != nil {
			held.add(s.Places, seen.here)
			continue
		}
		if s.Limit != nil {
			held.add(s.Places, seen.here)
		}
		for i, a := range s.Admissions {
			put(wanted, s.meanings[i], a.Destinations...)
		}
	}
	for _, o := range seen.rules {
		r := o.SecurityRule
		if o.managed {
			m := o.meaning
			covers := held.of(r)
			r.Destinations = nil
			for i, a := range o.hosts {
				if a.IsValid() {
					again := g.served[m][a]
					put(g.served, m, a)
					if again || !wanted[m][a] && (decided[m][a] || !covers(a)) {
						continue
					}
				}
				r.Destinations = append(r.Destinations, o.Destinations[i])
			}
			_, another := g.of[m]
			if len(r.Destinations) == 0 && (another || len(wanted[m]) == 0) {
				continue
			}
			if !another {
				g.of[m] = len(g.rules)
				g.hollow[m] = len(r.Destinations) == 0
			}
		}
		g.put(r)
	}
	return g
}

func (g *group) put(r lb.SecurityRule) {
	g.rules = append(g.rules, r)
	g.used.add(r)
	g.take(r)
}

func put(of map[meaning]map[netip.Addr]bool, m meaning, addresses ...netip.Addr) {
	if of[m] == nil {
		of[m] = map[netip.Addr]bool{}
	}
	for _, a := range addresses {
		of[m][a] = true
	}
}

// addAll adds what is missing, Service by Service, and rejects those that do not fit. again is true if a new
// pass is needed because existing rules of a rejected Service were removed.
func (g *group) addAll(shares []asking, refused map[string]error) (again bool) {
	for _, s := range shares {
		if s.Fixed || refused[s.Service] != nil {
			continue
		}
		need := g.needs(s)
		if need == (room{}) {
			continue
		}
		if s.Limit != nil && (g.bounded.exceeded(g.usage, s, g.missing(s)) != nil || g.used.and(need).exceeded() != nil) {
			continue // these clients are denied
		}
		if err := g.bounded.exceeded(g.usage, s, g.missing(s)); err != nil {
			// The rest of this pass finds other rejections: the rules of this Service leave no room for them.
			refused[s.Service] = err
			again = again || g.has(s)
			continue
		}
		if err := g.used.and(need).exceeded(); err != nil {
			if again {
				continue // the next pass decides
			}
			refused[s.Service] = err
			if g.has(s) {
				return true
			}
			continue
		}
		for i, a := range s.Admissions {
			g.usage.add(s.meanings[i], prefixes(a.Sources), holder{s.Service, s.Namespace}, g.add(a, s.meanings[i]))
		}
	}
	return again
}

// needs returns the capacity that the missing rules of a Service need.
func (g *group) needs(s asking) room {
	var need room
	counted := map[meaning]map[netip.Addr]bool{}
	for i, a := range s.Admissions {
		m := s.meanings[i]
		for _, d := range a.Destinations {
			if g.served[m][d] || counted[m][d] {
				continue
			}
			if _, there := g.of[m]; !there && counted[m] == nil {
				need.rules++
				need.sources += prefixes(a.Sources)
			}
			put(counted, m, d)
			need.destinations++
		}
	}
	return need
}

// has reports whether the observed group may have rules of a Service.
func (g *group) has(s asking) bool {
	for i, a := range s.Admissions {
		if g.hollow[s.meanings[i]] || g.seen.anyHere(a.Destinations) {
			return true
		}
	}
	return slices.ContainsFunc(s.Places, func(p Place) bool { return g.seen.anyHere(p.Addresses) })
}

// add adds the missing destinations of an admission to its rule, or to a new one, and returns their number.
func (g *group) add(a Admission, m meaning) int {
	var missing []netip.Addr
	for _, d := range a.Destinations {
		if !g.served[m][d] {
			missing = append(missing, d)
			put(g.served, m, d)
		}
	}
	if len(missing) == 0 {
		return 0
	}
	at, there := g.of[m]
	if !there {
		at = len(g.rules)
		g.of[m] = at
		g.put(g.fresh(a, m))
	}
	r := &g.rules[at]
	r.Destinations = slices.Clone(r.Destinations)
	slices.SortFunc(missing, netip.Addr.Compare)
	for _, d := range missing {
		r.Destinations = append(r.Destinations, d.String())
	}
	g.used.destinations += len(missing)
	return len(missing)
}

// withoutEmpty returns the rules without those retained for a destination that another rule with the same
// meaning has.
func (g *group) withoutEmpty() []lb.SecurityRule {
	empty := map[string]bool{}
	for _, at := range g.of {
		if r := g.rules[at]; len(r.Destinations) == 0 {
			empty[r.Name] = true
		}
	}
	return slices.DeleteFunc(g.rules, func(r lb.SecurityRule) bool { return empty[r.Name] })
}

// Diff returns the changes between two sets of rules.
func Diff(before, after []lb.SecurityRule) []plan.Change {
	was, is := byName(before), byName(after)
	var changes []plan.Change
	for _, r := range after {
		switch at, there := was[strings.ToLower(r.Name)]; {
		case !there:
			changes = append(changes, plan.Change{Action: plan.Add, Kind: Kind, Name: r.Name, Is: r})
		case !before[at].Same(r):
			changes = append(changes, plan.Change{Action: plan.Alter, Kind: Kind, Name: r.Name, Was: before[at], Is: r})
		}
	}
	for _, r := range before {
		if _, there := is[strings.ToLower(r.Name)]; !there {
			changes = append(changes, plan.Change{Action: plan.Remove, Kind: Kind, Name: r.Name, Was: r})
		}
	}
	return changes
}

// byName maps lower-case names to the index of the first rule.
func byName(rules []lb.SecurityRule) map[string]int {
	at := make(map[string]int, len(rules))
	for i, r := range rules {
		name := strings.ToLower(r.Name)
		if _, there := at[name]; !there {
			at[name] = i
		}
	}
	return at
}
