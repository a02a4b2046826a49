// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"

	"weir.dev/weir/internal/lb"
)

// serviceRef is a Service and its namespace to which a rule admits flows.
type serviceRef struct{ service, namespace string }

// serviceIndex maps rule destinations to Services.
type serviceIndex struct {
	at      map[netip.Addr][]serviceRef
	nodes   map[int32]serviceRef // by node port, which is unique
	managed map[netip.Addr]bool
}

func newServiceIndex(in SecurityInput) serviceIndex {
	h := serviceIndex{at: map[netip.Addr][]serviceRef{}, nodes: map[int32]serviceRef{}, managed: in.Managed}
	for _, s := range in.Shares {
		if s.Namespace == "" {
			continue
		}
		ref := serviceRef{s.Service, s.Namespace}
		for _, p := range s.Places {
			if len(p.Ports) > 0 {
				continue
			}
			for _, a := range p.Addresses {
				if services := h.at[a]; len(services) == 0 || services[len(services)-1] != ref {
					h.at[a] = append(services, ref)
				}
			}
		}
		for _, port := range s.NodePorts {
			h.nodes[port] = ref
		}
	}
	return h
}

// servicesAtNodePorts returns the Services with a node port in a rule. Managed rules list single ports.
func (s serviceIndex) servicesAtNodePorts(r lb.SecurityRule) map[serviceRef]bool {
	refs := map[serviceRef]bool{}
	for _, text := range r.DestinationPorts {
		if first, last, ok := parsePortRange(text); ok && first == last {
			if ref, ok := s.nodes[int32(first)]; ok { //nolint:gosec // a port
				refs[ref] = true
			}
		}
	}
	return refs
}

// entry is the usage of a rule by a namespace.
type entry struct {
	sources int
	// destinations is the number of destinations per Service.
	destinations map[string]int
}

// SecurityUsage is the usage of a security group by namespace. A shared rule counts for each namespace.
type SecurityUsage struct {
	of   map[string]map[ruleKey]*entry
	used map[string]capacity
	// total is the usage of the group; all are the meanings of its managed rules.
	total capacity
	all   map[ruleKey]bool
}

func newUsage() *SecurityUsage {
	return &SecurityUsage{of: map[string]map[ruleKey]*entry{}, used: map[string]capacity{}, all: map[ruleKey]bool{}}
}

func usageOf(s *parsedGroup, h serviceIndex) *SecurityUsage {
	u := newUsage()
	for _, o := range s.rules {
		u.countRule(o.SecurityRule, h)
	}
	return u
}

func (u *SecurityUsage) countRule(r lb.SecurityRule, h serviceIndex) {
	u.total.addRule(r)
	if !isManagedRule(r) {
		return
	}
	m, sources := ruleKeyOf(r), countPrefixes(r.Sources)
	u.all[m] = true
	var atNodes map[serviceRef]bool
	for _, text := range r.Destinations {
		a, host := parseHost(text)
		if !host || !h.managed[a] {
			continue
		}
		of := h.at[a]
		for _, ref := range of {
			u.addUsage(m, sources, ref, 1)
		}
		if len(of) > 0 {
			continue
		}
		if atNodes == nil {
			atNodes = h.servicesAtNodePorts(r)
		}
		for ref := range atNodes {
			u.addUsage(m, sources, ref, 1)
		}
	}
}

// addDestinations adds the planned destinations of a Service.
func (u *SecurityUsage) addDestinations(m ruleKey, sources int, ref serviceRef, destinations int) {
	if destinations == 0 {
		return
	}
	if !u.all[m] {
		u.all[m] = true
		u.total = *u.total.plus(capacity{rules: 1, sources: sources})
	}
	u.total.destinations += destinations
	u.addUsage(m, sources, ref, destinations)
}

func (u *SecurityUsage) addUsage(m ruleKey, sources int, ref serviceRef, destinations int) {
	if ref.namespace == "" {
		return
	}
	rules, used := u.of[ref.namespace], u.used[ref.namespace]
	if rules == nil {
		rules = map[ruleKey]*entry{}
		u.of[ref.namespace] = rules
	}
	e := rules[m]
	if e == nil {
		e = &entry{sources: sources, destinations: map[string]int{}}
		rules[m] = e
		used.rules++
		used.sources += sources
	}
	e.destinations[ref.service] += destinations
	used.destinations += destinations
	u.used[ref.namespace] = used
}

// isShared reports whether another namespace uses the group.
func (u *SecurityUsage) isShared(namespace string) bool {
	if _, own := u.used[namespace]; own {
		return len(u.used) > 1
	}
	return len(u.used) > 0
}

// missingUsage returns what the namespace needs in addition for a Service.
func (g *group) missingUsage(s parsedShare) capacity {
	var need capacity
	counted := map[ruleKey]map[netip.Addr]bool{}
	for i, a := range s.AccessRules {
		m := s.ruleKeys[i]
		for _, d := range a.Destinations {
			if g.existing[m][d] || counted[m][d] {
				continue
			}
			if counted[m] == nil && g.usage.of[s.Namespace][m] == nil {
				need.rules++
				need.sources += countPrefixes(a.Sources)
			}
			addAddresses(counted, m, d)
			need.destinations++
		}
	}
	return need
}

// namespaceLimits are the limits of namespaces in a plan.
type namespaceLimits struct {
	bounds func(namespace string) NamespaceSettings
	before *SecurityUsage
	// requesting are the namespaces of Services that need rules.
	requesting map[string]bool
	claims     map[string]SecurityClaim
}

func newNamespaceLimits(in SecurityInput, before *SecurityUsage) namespaceLimits {
	b := namespaceLimits{in.Limits, before, map[string]bool{}, in.Claims}
	for _, s := range in.Shares {
		if len(s.AccessRules) > 0 && s.Namespace != "" {
			b.requesting[s.Namespace] = true
		}
	}
	return b
}

// exceededLimit returns why a Service would exceed a limit of its namespace, or nil.
func (n namespaceLimits) exceededLimit(u *SecurityUsage, s parsedShare, more capacity) error {
	if n.bounds == nil || s.Namespace == "" || n.claims[s.Service].Includes(NewSecurityClaim(s.Namespace, s.AccessRules)) {
		return nil
	}
	shared := n.before.isShared(s.Namespace) || len(n.requesting) > 1
	return namespaceLimitError(s.Namespace, n.before.used[s.Namespace], *u.used[s.Namespace].plus(more), n.bounds(s.Namespace), shared)
}

// namespaceLimitError returns why a namespace would exceed a limit when its usage grows from old to would, or nil.
// Existing usage never exceeds.
func namespaceLimitError(namespace string, old, would capacity, set NamespaceSettings, shared bool) error {
	rules, addresses := NamespaceCapacity{Max: lb.MaxSecurityRules}, NamespaceCapacity{Max: lb.MaxSecurityPrefixes}
	part := set.ShareOf(MaxSecurityRules, rules, addresses, shared)
	for _, d := range []struct {
		had, would int
		noun       string
		bound      NamespaceBound
	}{
		{old.rules, would.rules, "rules", set.NamespaceBound(MaxSecurityRules, rules, shared)},
		{old.sources, would.sources, "addresses and ranges as sources of rules", part},
		{old.destinations, would.destinations, "addresses as destinations of rules", part},
	} {
		if !d.bound.CanChange(d.had, d.would) {
			return NewBoundExceededError(namespace, d.would, d.noun, "the security group", d.bound, MaxSecurityRules)
		}
	}
	return nil
}

// SecurityClaim is the expected demand of a Service before its addresses are known.
type SecurityClaim struct {
	Namespace    string
	sources      map[ruleKey]int
	destinations int
}

// NewSecurityClaim returns the claim of these admissions. Only the number of destinations counts.
func NewSecurityClaim(namespace string, admissions []AccessRule) SecurityClaim {
	c := SecurityClaim{Namespace: namespace, sources: map[ruleKey]int{}}
	for i, m := range ruleKeys(admissions) {
		c.sources[m] = countPrefixes(admissions[i].Sources)
		c.destinations += len(admissions[i].Destinations)
	}
	return c
}

// Includes reports whether a claim includes another one.
func (c SecurityClaim) Includes(other SecurityClaim) bool {
	if c.Namespace != other.Namespace || c.destinations < other.destinations {
		return false
	}
	for m := range other.sources {
		if !c.hasRule(m) {
			return false
		}
	}
	return true
}

// CheckClaim returns why the group would reject a Service, because of a limit of its namespace or because it is
// full, before anything is created for the Service; nil if it would not. claimed are the claims of other
// Services that were admitted but not written.
func (u *SecurityUsage) CheckClaim(service string, c SecurityClaim, claimed map[string]SecurityClaim, set NamespaceSettings) error {
	old := u.used[c.Namespace]
	would, total, shared := old, u.total, u.isShared(c.Namespace)
	of := map[ruleKey]bool{} // what the namespace has without the Service
	for m, e := range u.of[c.Namespace] {
		own, owns := e.destinations[service]
		would.destinations -= own
		total.destinations -= own
		if owns && len(e.destinations) == 1 {
			would = *would.plus(capacity{rules: -1, sources: -e.sources})
			if !c.hasRule(m) {
				total = *total.plus(capacity{rules: -1, sources: -e.sources})
			}
			continue
		}
		of[m] = true
	}
	keys := map[ruleKey]bool{} // what the group lacks and is already counted
	count := func(c SecurityClaim, owns bool) {
		for m, sources := range c.sources {
			if owns && !of[m] {
				of[m] = true
				would = *would.plus(capacity{rules: 1, sources: sources})
			}
			if !u.all[m] && !keys[m] {
				keys[m] = true
				total = *total.plus(capacity{rules: 1, sources: sources})
			}
		}
		if owns {
			would.destinations += c.destinations
		}
		total.destinations += c.destinations
	}
	for other, p := range claimed {
		if other != service {
			count(p, p.Namespace == c.Namespace)
			shared = shared || p.Namespace != c.Namespace
		}
	}
	count(c, true)
	if err := namespaceLimitError(c.Namespace, old, would, set, shared); err != nil {
		return err
	}
	if total.rules <= u.total.rules && total.sources <= u.total.sources && total.destinations <= u.total.destinations {
		return nil
	}
	return total.exceededLimit()
}

func (c SecurityClaim) hasRule(m ruleKey) bool {
	_, ok := c.sources[m]
	return ok
}

// ObservedSecurityUsage returns the usage of a group by its rules.
func ObservedSecurityUsage(in SecurityInput) *SecurityUsage {
	return usageOf(parseGroup(in), newServiceIndex(in))
}

// SecurityUse is the usage of a security group's Azure limits.
type SecurityUse struct{ Rules, Sources, Destinations int }

// SecurityUseOf returns the usage of rules.
func SecurityUseOf(rules []lb.SecurityRule) SecurityUse {
	u := &capacity{}
	for _, r := range rules {
		u.addRule(r)
	}
	return SecurityUse{u.rules, u.sources, u.destinations}
}
