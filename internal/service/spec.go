// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Spec is what a Service wants of a load balancer. It does not say of which one.
type Spec struct {
	// Owner is the first part of the names of all frontends, rules and probes of the
	// Service, but for the shared probe.
	Owner string
	// Internal is true for private frontends: they are on a load balancer of their own.
	Internal  bool
	Frontends []Frontend
	Probes    []lb.Probe
	Rules     []lb.Rule
	// Pools are those that the rules send flows to.
	Pools []Pool
	// Access says who may open connections.
	Access Access
	// Configurations are the load balancers that people allow, by name; empty for any.
	Configurations []string
	// Flaws are what is wrong with parts of the Service, which is served without them.
	Flaws []Flaw
	// Link is the Private Link Service that it asks for; nil for none.
	Link *PrivateLink
}

// Pool is a pool that a Service needs.
type Pool struct {
	Name   string
	Family lb.Family
	// Shared is true for the pool of all nodes of a load balancer, Interfaces if its members are network
	// interfaces.
	Shared, Interfaces bool
}

// Desired returns what a Service wants, or what is wrong with it: then nothing is to be
// changed for it.
func Desired(s Service, set Settings) (Spec, []Problem) {
	r := &reader{annotations: s.Annotations, probes: map[lb.Probe]bool{}}
	spec := Spec{Owner: s.Owner(), Internal: r.yes(Internal), Configurations: r.configurations()}
	spec.Frontends = r.frontends(s, set, spec.Internal)
	for _, f := range s.Families {
		spec.Pools = append(spec.Pools, poolOf(s, set, f))
	}
	st := r.style(s, spec.Internal)
	for _, f := range spec.Frontends {
		r.rules(&spec, s, set, f, st)
	}
	r.withoutPorts(spec.Rules, r.wrong)
	if problem := poolNameFits(s, set, spec.Pools); problem != nil {
		r.problems = append(r.problems, *problem)
	}
	if len(spec.Rules) == 0 {
		// Bounds limit rules and not pools. A pool of its own is filled after its rules only.
		spec.Pools = slices.DeleteFunc(spec.Pools, func(p Pool) bool { return !p.Shared })
	}
	spec.Access = r.access(s)
	r.boundSecurityRules(&spec)
	link, problems := LinkOf(s, set)
	spec.Link, r.problems = link, append(r.problems, problems...)
	if len(r.problems) > 0 {
		return Spec{}, r.problems
	}
	spec.Flaws = r.flaws.flaws
	return spec, nil
}

// poolOf names the pool of a family: a Local Service has its own where pools hold addresses, all
// others share that of the load balancer's nodes.
func poolOf(s Service, set Settings, family lb.Family) Pool {
	at := 0
	if family == lb.IPv6 {
		at = 1
	}
	if !s.Local || set.Interfaces {
		return Pool{Name: set.SharedPools()[at], Family: family, Shared: true, Interfaces: set.Interfaces}
	}
	return Pool{Name: s.OwnPools()[at], Family: family}
}

// SharedPools are the names of the pools of all nodes, that of IPv4 first.
func (set Settings) SharedPools() []string {
	return []string{set.ClusterName, set.ClusterName + "-IPv6"}
}

// interim is what the names of pools have that stand in for the shared ones. No name of a Service or
// namespace has its underscore, so no pool of a Service's own is called so.
const interim = "_addresses"

// InterimPools are the names of the pools that stand in for the shared ones while these go from one
// kind of members to the other, in the same order. They hold addresses.
func (set Settings) InterimPools() []string {
	var names []string
	for _, suffix := range []string{"", "-IPv6"} {
		last := interim + suffix
		names = append(names, set.ClusterName[:min(len(set.ClusterName), mostName-len(last))]+last)
	}
	return names
}

// NodePools are the names of all pools of nodes: two of IPv4 and IPv6, then two that stand in for them.
func (set Settings) NodePools() []string { return append(set.SharedPools(), set.InterimPools()...) }

// OwnPools are the names of the pools that the Service has for itself while it is Local,
// that of IPv4 first.
func (s Service) OwnPools() []string {
	if len(s.PoolNames) > 0 {
		return s.PoolNames
	}
	name := strings.ToLower(s.Namespace + "-" + s.Name)
	return []string{name, name + "-ipv6"}
}

// mostName is Azure's longest name of a pool.
const mostName = 80

func poolNameFits(s Service, set Settings, pools []Pool) *Problem {
	for _, p := range pools {
		if !p.Shared && slices.ContainsFunc(set.SharedPools(), func(name string) bool { return strings.EqualFold(name, p.Name) }) {
			return &Problem{"metadata.name", s.Name, "a name that makes another pool than " + p.Name + ", which is that of all nodes: rename the Service or its namespace"}
		}
		if !p.Shared && len(p.Name) > mostName {
			return &Problem{"metadata.name", s.Name, "a namespace and a name that make a pool name of at most " +
				strconv.Itoa(mostName) + " characters; " + p.Name + " has " + strconv.Itoa(len(p.Name))}
		}
	}
	return nil
}

// hasIPv6Alone reports whether all frontends of a Service are of IPv6.
func (spec *Spec) hasIPv6Alone() bool {
	return len(spec.Frontends) > 0 && !slices.ContainsFunc(spec.Frontends, func(f Frontend) bool { return f.Frontend.Family != lb.IPv6 })
}

// pool is the name of the pool of a family.
func (spec *Spec) pool(family lb.Family) string {
	for _, p := range spec.Pools {
		if p.Family == family {
			return p.Name
		}
	}
	return ""
}

// addProbe adds a probe, once.
func (r *reader) addProbe(spec *Spec, p lb.Probe) {
	if !r.probes[p] {
		r.probes[p] = true
		spec.Probes = append(spec.Probes, p)
	}
}

// configurations reads names of load balancers.
func (r *reader) configurations() []string {
	names := r.list(Configurations)
	if r.tooMany(Configurations, len(names), mostConfigurations, "names", "Azure takes no more load balancers in a region") {
		return nil
	}
	return names
}

// list reads names that are separated by commas.
func (r *reader) list(name string) []string {
	text, ok := r.text(name)
	if !ok {
		return nil
	}
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			names = append(names, part)
		}
	}
	return names
}
