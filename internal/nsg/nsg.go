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

	"weir.dev/weir/internal/bound"
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
	Service string
	// Namespace is that of the Service; empty is bounded by nothing.
	Namespace  string
	Admissions []Admission
	// Fixed is true if it is not known what the Service wants: at its places all stays as
	// it is.
	Fixed bool
	// Limit is set if only the upper bound of the Service's clients is known. Its Admissions are denials, which are
	// added. What the group admits at its Places is restricted to the Limit.
	Limit *Limit
	// Places are where the Service is reached. What its neighbours want there is added.
	Places []Place
	// NodePorts are the ports at nodes where it is reached.
	NodePorts []int32
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
	// Bounds returns the bounds of a namespace; nil applies none.
	Bounds func(namespace string) bound.Settings
	// Promised are the claims of Services that were admitted before their load balancer was written. A
	// bound that fell since then does not refuse them: they would be published without their rules.
	Promised map[string]Claim
}

// Plan is what the group has to become.
type Plan struct {
	// Next are all rules, in the order of the observed ones.
	Next    []lb.SecurityRule
	Changes []plan.Change
	// Refused are the Services for which there is no room, and why. At their places all
	// stays as it is.
	Refused map[string]error
	// Before and After are what namespaces have of the observed group, and of Next.
	Before, After *Usage
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Merge makes a plan. It is empty when it is made again from what the first one became.
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

// group is a security group that is being planned.
type group struct {
	rules []lb.SecurityRule
	// of is the first rule of each meaning.
	of map[meaning]int
	// served are the destinations of each meaning that a managed rule has.
	served map[meaning]map[netip.Addr]bool
	// hollow are the meanings of rules that stay for what is added alone.
	hollow map[meaning]bool
	seen   *sight
	used   room
	taken
	holders holders
	// usage is what namespaces have, what was added so far included.
	usage   *Usage
	bounded bounded
}

// takeOut starts a plan with what stays: of the managed rules the destinations that are
// not ours, those that are wanted, and those of Services of which nothing is known, unless they are decided about.
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

// put adds a rule.
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

// addAll adds what is missing, one Service after the other, and refuses those for which there
// is no room. It reports whether the plan has to be made again, because what stays of one
// that is refused was taken out.
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
			continue // those clients are denied
		}
		if err := g.bounded.exceeded(g.usage, s, g.missing(s)); err != nil {
			// The rest of this pass finds others: what stays of this one is no more room for them.
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

// needs is the room that what is missing of a Service takes.
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

// has reports whether the observed group may have something of a Service.
func (g *group) has(s asking) bool {
	for i, a := range s.Admissions {
		if g.hollow[s.meanings[i]] || g.seen.anyHere(a.Destinations) {
			return true
		}
	}
	return slices.ContainsFunc(s.Places, func(p Place) bool { return g.seen.anyHere(p.Addresses) })
}

// add gives an admission its destinations in the rule that means it, or else in a new one, and
// returns how many it lacked.
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

// byName says where the first rule of each name is.
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
