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
	// OwnPools are the dedicated pools of a Local Service, in the order of Pools, whether it uses them or not.
	OwnPools []Pool
	// Access defines which clients may connect.
	Access Access
	// Configurations are the allowed configuration names; empty for any.
	Configurations []string
	// Flaws are the errors in parts of the Service, which is served without them.
	Flaws []Flaw
	// Link is the requested Private Link Service, or nil.
	Link *PrivateLink
	// RequestedProperties are the annotations to record in WrittenProperties, without prefix.
	RequestedProperties []string
}

// Pool is a pool that a Service needs.
type Pool struct {
	Name   string
	Family lb.Family
	// Shared is true for a load balancer's pool of all nodes. Interfaces is true if its members are network
	// interfaces.
	Shared, Interfaces bool
	// DrainSeconds is nil to keep the observed drain period.
	DrainSeconds *int32
}

// BuildSpec returns the Spec of a Service, or its problems, in which case nothing must be changed.
func BuildSpec(s Service, set Settings) (Spec, []Problem) {
	r := &reader{annotations: s.Annotations, probes: map[lb.Probe]bool{}}
	spec := Spec{Owner: s.OwnerName(), Internal: r.readBool(Internal), Configurations: r.parseConfigurations()}
	r.readBool(RetainAddress)
	spec.RequestedProperties = r.requestedProperties()
	spec.Frontends = r.buildFrontends(s, set, spec.Internal)
	r.setGatewayLoadBalancers(&spec)
	drainSeconds := r.drainSeconds(s, set)
	for _, f := range s.Families {
		spec.addPool(s, set, f, drainSeconds)
	}
	st := r.buildStyle(s, spec.Internal)
	for _, f := range spec.Frontends {
		r.addRules(&spec, s, set, f, st)
	}
	r.reportExcluded(spec.Rules, r.addProblem)
	if problem := checkPoolNames(s.Name, set, spec.Pools); problem != nil {
		r.problems = append(r.problems, *problem)
	}
	if len(spec.Rules) == 0 {
		// Limits count rules, not pools, so a Service without rules gets no dedicated pool.
		spec.Pools = slices.DeleteFunc(spec.Pools, func(p Pool) bool { return !p.Shared })
	}
	spec.Access = r.parseAccess(s)
	r.boundSecurityRules(&spec)
	link, problems := LinkOf(s, set)
	spec.Link, r.problems = link, append(r.problems, problems...)
	if len(r.problems) > 0 {
		return Spec{}, r.problems
	}
	spec.Flaws = r.items
	return spec, nil
}

// addPool adds the pool of a family as if no rule existed; see SelectPools.
func (spec *Spec) addPool(s Service, set Settings, family lb.Family, drainSeconds *int32) {
	pool := set.sharedPool(family, set.Interfaces)
	if s.Local {
		own := Pool{Name: s.DedicatedPools()[familyIndex(family)], Family: family, DrainSeconds: drainSeconds}
		spec.OwnPools = append(spec.OwnPools, own)
		if set.UsesOwnPool(set.Interfaces, NoPool) {
			pool = own
		}
	}
	spec.Pools = append(spec.Pools, pool)
}

// SharedPools returns the names of the pools of all nodes, IPv4 first.
func (set Settings) SharedPools() []string {
	return []string{set.ClusterName, set.ClusterName + "-IPv6"}
}

// temporaryMark marks the names of temporary pools. Names of Services and namespaces have no underscore, so no
// dedicated pool can have the same name.
const temporaryMark = "_addresses"

// TemporaryPools returns the names of the temporary address pools used while the shared pools are converted,
// IPv4 first.
func (set Settings) TemporaryPools() []string {
	var names []string
	for _, suffix := range []string{"", "-IPv6"} {
		last := temporaryMark + suffix
		names = append(names, set.ClusterName[:min(len(set.ClusterName), maxNameLength-len(last))]+last)
	}
	return names
}

// NodePools returns the names of all pools of nodes: shared, then interim.
func (set Settings) NodePools() []string { return append(set.SharedPools(), set.TemporaryPools()...) }

// DedicatedPools returns the names of the dedicated pools of a Local Service, IPv4 first.
func (s Service) DedicatedPools() []string {
	if len(s.PoolNames) > 0 {
		return s.PoolNames
	}
	name := strings.ToLower(s.Namespace + "-" + s.Name)
	return []string{name, name + "-ipv6"}
}

// maxNameLength is Azure's limit for pool names.
const maxNameLength = 80

func checkPoolNames(name string, set Settings, pools []Pool) *Problem {
	for _, p := range pools {
		if !p.Shared && slices.ContainsFunc(set.SharedPools(), func(shared string) bool { return strings.EqualFold(shared, p.Name) }) {
			return &Problem{"metadata.name", name, "a name that makes another pool than " + p.Name + ", which is that of all nodes: rename the Service or its namespace"}
		}
		if !p.Shared && len(p.Name) > maxNameLength {
			return &Problem{"metadata.name", name, "a namespace and a name that make a pool name of at most " +
				strconv.Itoa(maxNameLength) + " characters; " + p.Name + " has " + strconv.Itoa(len(p.Name))}
		}
	}
	return nil
}

func (spec *Spec) isIPv6Only() bool {
	return len(spec.Frontends) > 0 && !slices.ContainsFunc(spec.Frontends, func(f Frontend) bool { return f.Frontend.Family != lb.IPv6 })
}

func (spec *Spec) poolName(family lb.Family) string {
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

func (r *reader) parseConfigurations() []string {
	names := r.readList(Configurations)
	if r.exceedsLimit(Configurations, len(names), maxConfigurations, "names", "Azure's limit of load balancers in a region") {
		return nil
	}
	return names
}

// readList splits a value at commas.
func (r *reader) readList(name string) []string {
	text, ok := r.readText(name)
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
