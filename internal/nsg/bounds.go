// SPDX-License-Identifier: Apache-2.0

package nsg

import (
	"net/netip"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
)

// holder is a Service and its namespace to which a rule admits flows.
type holder struct{ service, namespace string }

// holders maps rule destinations to Services.
type holders struct {
	at    map[netip.Addr][]holder
	nodes map[int32]holder // by node port, which is unique
	ours  map[netip.Addr]bool
}

func holdersOf(in Input) holders {
	h := holders{at: map[netip.Addr][]holder{}, nodes: map[int32]holder{}, ours: in.Ours}
	for _, s := range in.Shares {
		if s.Namespace == "" {
			continue
		}
		is := holder{s.Service, s.Namespace}
		for _, p := range s.Places {
			if len(p.Ports) > 0 {
				continue
			}
			for _, a := range p.Addresses {
				if all := h.at[a]; len(all) == 0 || all[len(all)-1] != is {
					h.at[a] = append(all, is)
				}
			}
		}
		for _, port := range s.NodePorts {
			h.nodes[port] = is
		}
	}
	return h
}

// atNodes returns the Services with a node port in a rule. Managed rules list single ports.
func (h holders) atNodes(r lb.SecurityRule) map[holder]bool {
	all := map[holder]bool{}
	for _, text := range r.DestinationPorts {
		if first, last, ok := span(text); ok && first == last {
			if is, there := h.nodes[int32(first)]; there { //nolint:gosec // a port
				all[is] = true
			}
		}
	}
	return all
}

// entry is the usage of a rule by a namespace.
type entry struct {
	sources int
	// destinations is the number of destinations per Service.
	destinations map[string]int
}

// Usage is the usage of a security group by namespace. A shared rule counts for each namespace.
type Usage struct {
	of    map[string]map[meaning]*entry
	rooms map[string]room
	// total is the usage of the group; all are the meanings of its managed rules.
	total room
	all   map[meaning]bool
}

func newUsage() *Usage {
	return &Usage{of: map[string]map[meaning]*entry{}, rooms: map[string]room{}, all: map[meaning]bool{}}
}

func usageOf(s *sight, h holders) *Usage {
	u := newUsage()
	for _, o := range s.rules {
		u.count(o.SecurityRule, h)
	}
	return u
}

func (u *Usage) count(r lb.SecurityRule, h holders) {
	u.total.add(r)
	if !managed(r) {
		return
	}
	m, sources := meaningOf(r), prefixes(r.Sources)
	u.all[m] = true
	var atNodes map[holder]bool
	for _, text := range r.Destinations {
		a, host := address(text)
		if !host || !h.ours[a] {
			continue
		}
		of := h.at[a]
		for _, is := range of {
			u.put(m, sources, is, 1)
		}
		if len(of) > 0 {
			continue
		}
		if atNodes == nil {
			atNodes = h.atNodes(r)
		}
		for is := range atNodes {
			u.put(m, sources, is, 1)
		}
	}
}

// add adds the planned destinations of a Service.
func (u *Usage) add(m meaning, sources int, is holder, destinations int) {
	if destinations == 0 {
		return
	}
	if !u.all[m] {
		u.all[m] = true
		u.total = *u.total.and(room{rules: 1, sources: sources})
	}
	u.total.destinations += destinations
	u.put(m, sources, is, destinations)
}

func (u *Usage) put(m meaning, sources int, is holder, destinations int) {
	if is.namespace == "" {
		return
	}
	rules, has := u.of[is.namespace], u.rooms[is.namespace]
	if rules == nil {
		rules = map[meaning]*entry{}
		u.of[is.namespace] = rules
	}
	e := rules[m]
	if e == nil {
		e = &entry{sources: sources, destinations: map[string]int{}}
		rules[m] = e
		has.rules++
		has.sources += sources
	}
	e.destinations[is.service] += destinations
	has.destinations += destinations
	u.rooms[is.namespace] = has
}

// isShared reports whether another namespace uses the group.
func (u *Usage) isShared(namespace string) bool {
	if _, own := u.rooms[namespace]; own {
		return len(u.rooms) > 1
	}
	return len(u.rooms) > 0
}

// missing returns what the namespace needs in addition for a Service.
func (g *group) missing(s asking) room {
	var need room
	counted := map[meaning]map[netip.Addr]bool{}
	for i, a := range s.Admissions {
		m := s.meanings[i]
		for _, d := range a.Destinations {
			if g.served[m][d] || counted[m][d] {
				continue
			}
			if counted[m] == nil && g.usage.of[s.Namespace][m] == nil {
				need.rules++
				need.sources += prefixes(a.Sources)
			}
			put(counted, m, d)
			need.destinations++
		}
	}
	return need
}

// bounded are the limits of namespaces in a plan.
type bounded struct {
	bounds func(namespace string) bound.Settings
	before *Usage
	// wants are the namespaces of Services that need rules.
	wants    map[string]bool
	promised map[string]Claim
}

func boundedBy(in Input, before *Usage) bounded {
	b := bounded{in.Bounds, before, map[string]bool{}, in.Promised}
	for _, s := range in.Shares {
		if len(s.Admissions) > 0 && s.Namespace != "" {
			b.wants[s.Namespace] = true
		}
	}
	return b
}

// exceeded returns why a Service would exceed a limit of its namespace, or nil.
func (b bounded) exceeded(u *Usage, s asking, more room) error {
	if b.bounds == nil || s.Namespace == "" || b.promised[s.Service].Covers(ClaimOf(s.Namespace, s.Admissions)) {
		return nil
	}
	shared := b.before.isShared(s.Namespace) || len(b.wants) > 1
	return exceedsBound(s.Namespace, b.before.rooms[s.Namespace], *u.rooms[s.Namespace].and(more), b.bounds(s.Namespace), shared)
}

// exceedsBound returns why a namespace would exceed a limit when its usage grows from had to would, or nil.
// Existing usage never exceeds.
func exceedsBound(namespace string, had, would room, set bound.Settings, shared bool) error {
	rules, addresses := bound.Capacity{Max: lb.MostSecurityRules}, bound.Capacity{Max: lb.MostSecurityPrefixes}
	part := set.Part(bound.MaxSecurityRules, rules, addresses, shared)
	for _, d := range []struct {
		had, would int
		what       string
		bound      bound.Bound
	}{
		{had.rules, would.rules, "rules", set.Of(bound.MaxSecurityRules, rules, shared)},
		{had.sources, would.sources, "addresses and ranges as sources of rules", part},
		{had.destinations, would.destinations, "addresses as destinations of rules", part},
	} {
		if !d.bound.Allows(d.had, d.would) {
			return bound.Exceeded(namespace, d.would, d.what, "the security group", d.bound, bound.MaxSecurityRules)
		}
	}
	return nil
}

// Claim is the expected demand of a Service before its addresses are known.
type Claim struct {
	Namespace    string
	sources      map[meaning]int
	destinations int
}

// ClaimOf returns the claim of these admissions. Only the number of destinations counts.
func ClaimOf(namespace string, admissions []Admission) Claim {
	c := Claim{Namespace: namespace, sources: map[meaning]int{}}
	for i, m := range meaningsOf(admissions) {
		c.sources[m] = prefixes(admissions[i].Sources)
		c.destinations += len(admissions[i].Destinations)
	}
	return c
}

// Covers reports whether a claim includes another one.
func (c Claim) Covers(other Claim) bool {
	if c.Namespace != other.Namespace || c.destinations < other.destinations {
		return false
	}
	for m := range other.sources {
		if !c.has(m) {
			return false
		}
	}
	return true
}

// Admits returns why the group would reject a Service, because of a limit of its namespace or because it is
// full, before anything is created for the Service; nil if it would not. promised are the claims of other
// Services that were admitted but not written.
func (u *Usage) Admits(service string, c Claim, promised map[string]Claim, set bound.Settings) error {
	had := u.rooms[c.Namespace]
	would, total, shared := had, u.total, u.isShared(c.Namespace)
	of := map[meaning]bool{} // what the namespace has without the Service
	for m, e := range u.of[c.Namespace] {
		own, its := e.destinations[service]
		would.destinations -= own
		total.destinations -= own
		if its && len(e.destinations) == 1 {
			would = *would.and(room{rules: -1, sources: -e.sources})
			if !c.has(m) {
				total = *total.and(room{rules: -1, sources: -e.sources})
			}
			continue
		}
		of[m] = true
	}
	all := map[meaning]bool{} // what the group lacks and is already counted
	count := func(c Claim, its bool) {
		for m, sources := range c.sources {
			if its && !of[m] {
				of[m] = true
				would = *would.and(room{rules: 1, sources: sources})
			}
			if !u.all[m] && !all[m] {
				all[m] = true
				total = *total.and(room{rules: 1, sources: sources})
			}
		}
		if its {
			would.destinations += c.destinations
		}
		total.destinations += c.destinations
	}
	for other, p := range promised {
		if other != service {
			count(p, p.Namespace == c.Namespace)
			shared = shared || p.Namespace != c.Namespace
		}
	}
	count(c, true)
	if err := exceedsBound(c.Namespace, had, would, set, shared); err != nil {
		return err
	}
	if total.rules <= u.total.rules && total.sources <= u.total.sources && total.destinations <= u.total.destinations {
		return nil
	}
	return total.exceeded()
}

func (c Claim) has(m meaning) bool {
	_, is := c.sources[m]
	return is
}

// Observe returns the usage of a group by its rules.
func Observe(in Input) *Usage { return usageOf(see(in), holdersOf(in)) }
