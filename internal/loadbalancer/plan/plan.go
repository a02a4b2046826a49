// SPDX-License-Identifier: Apache-2.0

// Package plan compares a load balancer with what Services want and computes its next state. It is pure. Parts
// that no Service of the plan owns are foreign and unchanged.
package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// ServiceParts is what one Service wants of a load balancer. Without parts, the Service is removed.
type ServiceParts struct {
	// Owner is the prefix of the names of the Service's frontends, rules and probes.
	Owner string
	// Namespace is the Service's namespace; if empty, ServiceOf is used.
	Namespace string
	// Frontends are complete: public IPs have IDs.
	Frontends      []lb.Frontend
	Probes         []lb.Probe
	Rules          []lb.Rule
	Pools          []lb.Pool
	DedicatedPools []string
	RecordedPools  []string
	// ManagedPools are the RecordedPools that Weir made and fills. They are deleted with their Service, even before a
	// rule refers to them.
	ManagedPools []string
	// NeedsAddress reports whether a leaving Service needs the address of a frontend elsewhere; nil means no.
	NeedsAddress func(lb.Frontend) bool
	// RetainFor is the Service, as namespace/name, if its private addresses are retained when it leaves them.
	RetainFor string
	// Unresolved are more frontends, with unknown addresses, for the limit check only.
	Unresolved []lb.Frontend
	// LeftPools are the DedicatedPools that Weir made and left because they hold foreign addresses.
	LeftPools []string
}

// Input is the input of a plan.
type Input struct {
	// Observed is the load balancer; without an etag it does not exist and is the template to create it from.
	Observed lb.LoadBalancer
	// Services are the Services to plan, oldest first, with namespaces in turn: of two new ones with the same address or port
	// the first gets it.
	Services []ServiceParts
	Others   []string
	// Now is when addresses that a Service leaves are retained.
	Now time.Time
	// MaxRules limits the rules of the load balancer; 0 means no limit. RulesBy names the setting behind it;
	// empty means Azure's limit. MaxFrontends limits the frontends; 0 means no limit.
	MaxRules     int
	RulesBy      string
	MaxFrontends int
	// PeerRules counts the rules of other load balancers per machine, by lower-case pool name; nil for pools of
	// addresses.
	PeerRules Counts
	// NamespaceBounds returns the bounds of a namespace; nil means none. It needs ServiceOf.
	NamespaceBounds func(namespace string) service.NamespaceSettings
	// SharedPools are pools deleted only with the load balancer. SharedProbes are probes deleted when no rule
	// refers to them.
	SharedPools, SharedProbes []string
	// ReplacedPools are shared pools to delete once no rule refers to them, because another pool replaced them.
	ReplacedPools []string
	// LeftPools are pools that Weir made and left for foreign members, without a BackendPool: deleted once empty and
	// unreferenced.
	LeftPools []string
	// ForeignMembers describes the members of Service pools that Weir did not add, by lower-case pool name.
	ForeignMembers map[string][]string
	// RemainingInterfaces counts the network interfaces that Weir removes from each shared pool before the load balancer
	// can be deleted, by lower-case name. Nil means unknown: a pool of network interfaces then retains the load
	// balancer.
	RemainingInterfaces map[string]int
	// FamilyOf returns the family of a public frontend; empty if unknown. The second function reports whether
	// Weir made the address of a frontend. Both may be nil.
	FamilyOf  func(lb.Frontend) lb.Family
	IsManaged func(lb.Frontend) bool
	// IsAbandoned reports whether the Service of a frontend left it; nil if other Services may use it.
	IsAbandoned func(lb.Frontend) bool
	// ServiceOf returns the Service of a rule, AddressAt the address of a place for messages; empty if unknown.
	// Both may be nil.
	ServiceOf, AddressAt func(string) string
	// GatewayLoadBalancersOf returns those that the Service of a rule requests, valid or not; nil means none.
	GatewayLoadBalancersOf func(rule string) []string
}

// Plan is the desired state of a load balancer, and the changes that lead to it.
type Plan struct {
	// Next is the desired load balancer; equal to the observed one if there is no change. Pools have their
	// observed members.
	Next lb.LoadBalancer
	// Delete is set if the load balancer has no parts left.
	Delete bool
	// Changes are the differences: additions in dependency order, removals last in reverse.
	Changes       []lb.Change
	RetainedParts []RetainedPart
	// DrainingPools are the pools that block the deletion of the load balancer until their network interfaces have
	// left.
	DrainingPools    []DrainingPool
	RetainedFrontend *lb.Frontend
	newlyRetained    []lb.Change
	// Rejected are the rejected Services by owner, with the reason. Their parts are unchanged.
	Rejected map[string]error
}

// Make returns a plan. It is idempotent: a plan of the result is empty.
func Make(in Input) Plan {
	fixedIn, fixed := in.fixRequested()
	p := makePlan(fixedIn)
	if len(fixed) > 0 {
		p.releaseFixed(in, fixed)
	}
	return p
}

func makePlan(in Input) Plan {
	in.Services = keepZones(in.Observed, nameFrontends(in))
	p := Plan{Next: cloneLoadBalancer(in.Observed), Rejected: rejectServices(in)}
	accepted := p.acceptedServices(in.Services)
	rest := in
	rest.Services = accepted
	maps.Copy(p.Rejected, MissingIPv4(rest))
	accepted = p.acceptedServices(accepted)
	p.Next.Frontends = resolveFrontends(in, accepted)
	for _, s := range accepted {
		p.removePools(in, s, applyParts(&p.Next, s))
	}
	p.retainAddresses(in, accepted)
	p.retainPinned(accepted)
	removeUnusedProbes(&p.Next, in)
	p.removeReplaced(in)
	p.Changes = Diff(in.Observed, p.Next)
	p.Delete = in.Observed.Etag != "" && hasOnlySharedPools(p.Next, in) && (len(p.Changes) > 0 || isManaged(in.Observed, in)) && !p.isWanted(in)
	if p.Delete {
		p.Changes = Diff(in.Observed, lb.LoadBalancer{})
		return p
	}
	if rejected := p.retainFrontend(in, accepted); rejected != nil {
		return rejected.planWithout(in, p)
	}
	p.Changes = p.withRetained(Diff(in.Observed, p.Next))
	return p
}

func (p Plan) acceptedServices(services []ServiceParts) []ServiceParts {
	return slices.DeleteFunc(slices.Clone(services), func(s ServiceParts) bool { return p.Rejected[s.Owner] != nil })
}

// IsEmpty reports whether there is nothing to do.
func (p Plan) IsEmpty() bool { return len(p.Changes) == 0 && !p.Delete }

// applyParts replaces a Service's parts and returns the pools its rules referred to. The frontends must
// be final.
func applyParts(next *lb.LoadBalancer, s ServiceParts) (old []string) {
	rules := slices.Clone(s.Rules)
	seat := map[string]string{}
	for i, r := range rules {
		if _, known := seat[r.Frontend]; !known {
			seat[r.Frontend] = frontendAt(*next, s, r.Frontend)
		}
		rules[i].Frontend = seat[r.Frontend]
	}
	old = poolsOf(next.Rules, s.Owner)
	next.Rules = mergeParts(next.Rules, rules, ownedBy(s.Owner, ruleName), ruleName, sameRule, keepTracking)
	next.Probes = mergeParts(next.Probes, s.Probes, ownedBy(s.Owner, probeName), probeName, sameProbe, keepBehavior)
	for _, w := range s.Pools {
		at := slices.IndexFunc(next.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, w.ID.Name) })
		switch {
		case at < 0:
			next.Pools = append(next.Pools, w)
		case w.DrainSeconds != nil && !samePool(next.Pools[at], w):
			next.Pools[at].DrainSeconds = w.DrainSeconds
		}
	}
	return old
}

// poolsOf returns the pools that an owner's rules refer to. Only rules prove the owner of a pool: any user can
// create a Service with a matching name.
func poolsOf(rules []lb.Rule, owner string) []string {
	var pools []string
	for _, r := range rules {
		if hasOwner(owner, r.Name) {
			pools = append(pools, r.Pool)
		}
	}
	return pools
}

// removeUnusedProbes removes unused shared probes. Shared pools remain as long as the load balancer: outbound rules need the
// nodes too.
func removeUnusedProbes(next *lb.LoadBalancer, in Input) {
	used := map[string]bool{}
	for _, r := range next.Rules {
		used[strings.ToLower(r.Probe)] = true
	}
	next.Probes = slices.DeleteFunc(next.Probes, func(p lb.Probe) bool {
		return containsName(in.SharedProbes, p.Name) && !used[strings.ToLower(p.Name)]
	})
}

// isManaged reports whether Services made an empty load balancer: it has a shared pool, or the plan removes
// something. Otherwise it is foreign.
func isManaged(observed lb.LoadBalancer, in Input) bool {
	return slices.ContainsFunc(observed.Pools, func(p lb.Pool) bool { return containsName(in.SharedPools, p.ID.Name) })
}

func hasOnlySharedPools(next lb.LoadBalancer, in Input) bool {
	return len(next.Frontends)+len(next.Rules)+len(next.Probes)+len(next.Pinned)+len(next.RetainedAddresses()) == 0 &&
		!slices.ContainsFunc(next.Pools, func(p lb.Pool) bool {
			return !containsName(in.SharedPools, p.ID.Name) || p.NIC && in.RemainingInterfaces == nil
		})
}

func cloneLoadBalancer(b lb.LoadBalancer) lb.LoadBalancer {
	b.Frontends, b.Pools = slices.Clone(b.Frontends), slices.Clone(b.Pools)
	b.Probes, b.Rules = slices.Clone(b.Probes), slices.Clone(b.Rules)
	b.Tags, b.Pinned = maps.Clone(b.Tags), maps.Clone(b.Pinned)
	return b
}
