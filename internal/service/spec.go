// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Spec is the desired load balancer configuration of a Service, independent of the load balancer.
type Spec struct {
	// Owner is the name prefix of the Service's frontends, rules and probes, except the shared probe.
	Owner string
	// Internal is true for private frontends, which are on a separate load balancer.
	Internal  bool
	Frontends []Frontend
	Probes    []lb.Probe
	Rules     []lb.Rule
	// Pools are the backend pools of the rules.
	Pools []Pool
	// Access defines which clients may connect.
	Access Access
	// Configurations are the allowed configuration names; empty for any.
	Configurations []string
	// Flaws are the errors in parts of the Service, which is served without them.
	Flaws []Flaw
	// Link is the requested Private Link Service, or nil.
	Link *PrivateLink
}

// Pool is a pool that a Service needs.
type Pool struct {
	Name   string
	Family lb.Family
	// Shared is true for a load balancer's pool of all nodes. Interfaces is true if its members are network
	// interfaces.
	Shared, Interfaces bool
}

// Desired returns the Spec of a Service, or its problems, in which case nothing must be changed.
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
		// Limits count rules, not pools, so a Service without rules gets no dedicated pool.
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

// poolOf returns the pool of a family: a Local Service has a dedicated one if members are addresses; others
// share the pool of all nodes.
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

// SharedPools returns the names of the pools of all nodes, IPv4 first.
func (set Settings) SharedPools() []string {
	return []string{set.ClusterName, set.ClusterName + "-IPv6"}
}

// interim marks the names of temporary pools. Names of Services and namespaces have no underscore, so no
// dedicated pool can have the same name.
const interim = "_addresses"

// InterimPools returns the names of the temporary address pools used while the shared pools are converted,
// IPv4 first.
func (set Settings) InterimPools() []string {
	var names []string
	for _, suffix := range []string{"", "-IPv6"} {
		last := interim + suffix
		names = append(names, set.ClusterName[:min(len(set.ClusterName), mostName-len(last))]+last)
	}
	return names
}

// NodePools returns the names of all pools of nodes: shared, then interim.
func (set Settings) NodePools() []string { return append(set.SharedPools(), set.InterimPools()...) }

// OwnPools returns the names of the dedicated pools of a Local Service, IPv4 first.
func (s Service) OwnPools() []string {
	if len(s.PoolNames) > 0 {
		return s.PoolNames
	}
	name := strings.ToLower(s.Namespace + "-" + s.Name)
	return []string{name, name + "-ipv6"}
}

// mostName is Azure's limit for pool names.
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

func (spec *Spec) hasIPv6Alone() bool {
	return len(spec.Frontends) > 0 && !slices.ContainsFunc(spec.Frontends, func(f Frontend) bool { return f.Frontend.Family != lb.IPv6 })
}

func (spec *Spec) pool(family lb.Family) string {
	for _, p := range spec.Pools {
		if p.Family == family {
			return p.Name
		}
	}
	return ""
}

func (r *reader) addProbe(spec *Spec, p lb.Probe) {
	if !r.probes[p] {
		r.probes[p] = true
		spec.Probes = append(spec.Probes, p)
	}
}

func (r *reader) configurations() []string {
	names := r.list(Configurations)
	if r.tooMany(Configurations, len(names), mostConfigurations, "names", "Azure takes no more load balancers in a region") {
		return nil
	}
	return names
}

// list splits a value at commas.
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
