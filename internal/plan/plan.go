// SPDX-License-Identifier: Apache-2.0

// Package plan compares a load balancer as it is with what Services want of it, and says
// what it has to become. It is pure. What no Service of the plan owns is foreign to it,
// and stays as it is.
package plan

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
)

// Share is what one Service wants of a load balancer. One that wants nothing leaves.
type Share struct {
	// Owner is the first part of the names of the Service's frontends, rules and probes.
	Owner string
	// Namespace is that of the Service; empty if only ServiceOf knows it.
	Namespace string
	// Frontends are complete: public IPs are known by their ids.
	Frontends []lb.Frontend
	Probes    []lb.Probe
	Rules     []lb.Rule
	// Pools are those that the rules refer to.
	Pools []lb.Pool
	// OwnPools are the names of the pools that are the Service's alone, those that it had
	// before included.
	OwnPools []string
	// HeldPools are those of OwnPools that are on record as the Service's.
	HeldPools []string
	// MadePools are those of HeldPools that Weir made, and fills: one goes with what it is of,
	// also before a rule sends flows to it.
	MadePools []string
	// Needs reports whether a Service that leaves needs the address of a frontend elsewhere; nil for none.
	Needs func(lb.Frontend) bool
	// Unresolved are further frontends whose address is not known yet. Exceeding alone regards them.
	Unresolved []lb.Frontend
	// LeftPools are those of OwnPools that Weir made for the Service, and left to the addresses of others.
	LeftPools []string
}

// Input is what a plan is made from.
type Input struct {
	// Observed is the load balancer; without an etag it does not exist, and says what
	// it has to be if it is made.
	Observed lb.LoadBalancer
	// Shares are those of the Services that are due, in the order in which they are
	// served where they compete.
	Shares []Share
	// Others are the owners of the Services on this load balancer that are not due.
	Others []string
	// MostRules is how many rules the load balancer may have; 0 is no limit. RulesBy names what sets
	// it; empty is Azure. MaxFrontends is how many frontends it may have; 0 is no limit.
	MostRules    int
	RulesBy      string
	MaxFrontends int
	// Beside are the rules that the machines in a pool have of other load balancers, by the pool's name in lower case; nil
	// where pools hold addresses.
	Beside Counts
	// Bounds returns the bounds of a namespace; nil applies none. They need ServiceOf.
	Bounds func(namespace string) bound.Settings
	// SharedPools are the names of the pools that go with the load balancer alone, and
	// SharedProbes those of the probes that go when no rule refers to them.
	SharedPools, SharedProbes []string
	// Retired are the names of shared pools that go as soon as no rule refers to them: another one has
	// taken their place.
	Retired []string
	// Left are the names of the pools that Weir made and left to others, and for which there is no BackendPool: one
	// that is empty goes as soon as nothing refers to it.
	Left []string
	// Foreign are the members of the pools of Services that Weir did not put there, for people, by
	// the pools' names in lower case.
	Foreign map[string][]string
	// Emptying are the shared pools from which Weir takes network interfaces before the load balancer
	// can go, by their names in lower case, and how many they are yet. Nil is that nobody has looked:
	// then a pool of interfaces keeps the load balancer.
	Emptying map[string]int
	// FamilyOf is the family of a public frontend; empty where it is not known. Made reports whether Weir
	// made the address of a frontend. Nil knows nothing.
	FamilyOf func(lb.Frontend) lb.Family
	Made     func(lb.Frontend) bool
	// Abandoned reports whether the Service of a frontend has left it; nil where another one may use it.
	Abandoned func(lb.Frontend) bool
	// ServiceOf names the Service that a rule is of, and AddressAt the address of a place, for
	// people; empty where it is not known. Nil knows nothing.
	ServiceOf, AddressAt func(string) string
}

// Plan is what has to be done.
type Plan struct {
	// Next is the load balancer as it shall become; equal to the observed one if there
	// is nothing to do. The pools hold what was observed in them.
	Next lb.LoadBalancer
	// Delete is true if nothing is left on the load balancer.
	Delete bool
	// Changes lists what differs: additions forward, removals last and in reverse.
	Changes []Change
	// Kept are the pools and frontends that stay for what others have made.
	Kept []Kept
	// Emptying are the pools that keep a load balancer on which nothing else is left, until their
	// network interfaces have left.
	Emptying []Emptying
	// Retained is the frontend that no Service needs, and that stays because Azure requires one; nil for none.
	Retained *lb.Frontend
	// Refused are the Services that are left out, by owner, and why. What they have on
	// the load balancer stays as it is.
	Refused map[string]error
}

// Make makes a plan. It is empty when it is made again from what the first one became.
func Make(in Input) Plan {
	in.Shares = nameFrontends(in)
	p := Plan{Next: clone(in.Observed), Refused: refuse(in)}
	accepted := p.accepted(in.Shares)
	lack := in
	lack.Shares = accepted
	maps.Copy(p.Refused, LacksIPv4(lack))
	accepted = p.accepted(accepted)
	p.Next.Frontends = settle(in, accepted)
	for _, s := range accepted {
		p.let(in, s, take(&p.Next, s))
	}
	p.keepPinned(accepted)
	sweep(&p.Next, in)
	p.retire(in)
	p.Changes = Diff(in.Observed, p.Next)
	p.Delete = in.Observed.Etag != "" && bare(p.Next, in) && (len(p.Changes) > 0 || made(in.Observed, in)) && !p.keepsBalancer(in)
	if p.Delete {
		p.Changes = Diff(in.Observed, lb.LoadBalancer{})
		return p
	}
	if stranded := p.retain(in, accepted); stranded != nil {
		return stranded.without(in, p)
	}
	p.Changes = Diff(in.Observed, p.Next)
	return p
}

// accepted are the Services that the plan does not refuse.
func (p Plan) accepted(shares []Share) []Share {
	return slices.DeleteFunc(slices.Clone(shares), func(s Share) bool { return p.Refused[s.Owner] != nil })
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 && !p.Delete }

// take gives a Service its share, in place of what it had, and returns the pools that its
// rules sent flows to. The frontends are settled.
func take(next *lb.LoadBalancer, s Share) (had []string) {
	rules := slices.Clone(s.Rules)
	seat := map[string]string{}
	for i, r := range rules {
		if _, known := seat[r.Frontend]; !known {
			seat[r.Frontend] = seatOf(*next, s, r.Frontend)
		}
		rules[i].Frontend = seat[r.Frontend]
	}
	had = poolsOf(next.Rules, s.Owner)
	next.Rules = merge(next.Rules, rules, owned(s.Owner, ruleName), ruleName, sameRule)
	next.Probes = merge(next.Probes, s.Probes, owned(s.Owner, probeName), probeName, sameProbe)
	for _, w := range s.Pools {
		if !contains(poolNames(next.Pools), w.ID.Name) {
			next.Pools = append(next.Pools, w)
		}
	}
	return had
}

// poolsOf are the pools that the rules of an owner send flows to. Nothing else tells whose a
// pool is: its name is made of what anybody may call his Service.
func poolsOf(rules []lb.Rule, owner string) []string {
	var pools []string
	for _, r := range rules {
		if owns(owner, r.Name) {
			pools = append(pools, r.Pool)
		}
	}
	return pools
}

// sweep takes out the shared probes that nobody uses any more. The shared pools stay as
// long as the load balancer: other things than rules need its nodes.
func sweep(next *lb.LoadBalancer, in Input) {
	used := map[string]bool{}
	for _, r := range next.Rules {
		used[strings.ToLower(r.Probe)] = true
	}
	next.Probes = slices.DeleteFunc(next.Probes, func(p lb.Probe) bool {
		return contains(in.SharedProbes, p.Name) && !used[strings.ToLower(p.Name)]
	})
}

// made reports whether an empty load balancer is one that Services had: it has a shared pool.
// One without, of which nothing is taken away, is somebody else's.
func made(observed lb.LoadBalancer, in Input) bool {
	return slices.ContainsFunc(observed.Pools, func(p lb.Pool) bool { return contains(in.SharedPools, p.ID.Name) })
}

// bare reports whether nothing is left but shared pools that nobody refers to.
func bare(next lb.LoadBalancer, in Input) bool {
	return len(next.Frontends)+len(next.Rules)+len(next.Probes)+len(next.Pinned) == 0 &&
		!slices.ContainsFunc(next.Pools, func(p lb.Pool) bool {
			return !contains(in.SharedPools, p.ID.Name) || p.NIC && in.Emptying == nil
		})
}

func clone(b lb.LoadBalancer) lb.LoadBalancer {
	b.Frontends, b.Pools = slices.Clone(b.Frontends), slices.Clone(b.Pools)
	b.Probes, b.Rules = slices.Clone(b.Probes), slices.Clone(b.Rules)
	b.Tags, b.Pinned = maps.Clone(b.Tags), maps.Clone(b.Pinned)
	return b
}
