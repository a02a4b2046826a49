// SPDX-License-Identifier: Apache-2.0

// Package plan compares a load balancer as it is with what Services want of it, and says
// what it has to become. It is pure. What no Service of the plan owns is foreign to it,
// and stays as it is.
package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Share is what one Service wants of a load balancer. One that wants nothing leaves.
type Share struct {
	// Owner is the first part of the names of the Service's frontends, rules and probes.
	Owner string
	// Frontends are complete: public IPs are known by their ids.
	Frontends []lb.Frontend
	Probes    []lb.Probe
	Rules     []lb.Rule
	// Pools are those that the rules refer to.
	Pools []lb.Pool
	// OwnPools are the names of the pools that are the Service's alone, those that it had
	// before included.
	OwnPools []string
}

// Input is what a plan is made from.
type Input struct {
	// Observed is the load balancer; without an etag it does not exist, and says what
	// it has to be if it is made.
	Observed lb.LoadBalancer
	// Shares are those of the Services that are due, in the order in which they are
	// served where they compete.
	Shares []Share
	// MostRules is how many rules the load balancer may have; 0 is no limit.
	MostRules int
	// Shared are the names of the pools and probes that belong to no Service, and go
	// with the load balancer or when no rule refers to them.
	SharedPools  []string
	SharedProbes []string
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
	// Refused are the Services that are left out, by owner, and why. What they have on
	// the load balancer stays as it is.
	Refused map[string]error
}

// Make makes a plan. It is empty when it is made again from what the first one became.
func Make(in Input) Plan {
	p := Plan{Next: clone(in.Observed), Refused: map[string]error{}}
	for _, s := range in.Shares {
		next := clone(p.Next)
		if err := take(&next, s, in); err != nil {
			p.Refused[s.Owner] = err
			continue
		}
		p.Next = next
	}
	sweep(&p.Next, in)
	p.Delete = in.Observed.Etag != "" && bare(p.Next, in)
	p.Changes = diff(in.Observed, p.Next)
	if p.Delete {
		p.Changes = diff(in.Observed, lb.LoadBalancer{})
	}
	return p
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 && !p.Delete }

// take gives a Service its share, in place of what it had.
func take(next *lb.LoadBalancer, s Share, in Input) error {
	rules := s.Rules
	frontends := make([]lb.Frontend, 0, len(s.Frontends))
	for _, f := range s.Frontends {
		shared := at(*next, s.Owner, f)
		if shared == "" {
			frontends = append(frontends, f)
			continue
		}
		rules = renamed(rules, f.Name, shared)
	}
	had := len(next.Rules)
	next.Rules = merge(next.Rules, rules, owned(s.Owner, ruleName), ruleName, sameRule)
	next.Probes = merge(next.Probes, s.Probes, owned(s.Owner, probeName), probeName, sameProbe)
	next.Pools = addPools(next.Pools, s.Pools)
	next.Frontends = merge(next.Frontends, frontends, func(f lb.Frontend) bool {
		return owned(s.Owner, frontendName)(f) && !inUse(*next, f)
	}, frontendName, sameFrontend)
	next.Pools = slices.DeleteFunc(next.Pools, func(p lb.Pool) bool {
		return contains(s.OwnPools, p.ID.Name) && !contains(poolNames(s.Pools), p.ID.Name) && !poolInUse(*next, p)
	})
	if in.MostRules > 0 && len(next.Rules) > in.MostRules && len(next.Rules) > had {
		return fmt.Errorf("load balancer %s would have %d rules, and may have %d", next.ID.Name, len(next.Rules), in.MostRules)
	}
	return compete(*next, s.Owner)
}

// at names the frontend of somebody else that already has the address which f wants; a
// Service shares it. Empty if there is none.
func at(next lb.LoadBalancer, owner string, f lb.Frontend) string {
	for _, other := range next.Frontends {
		if owns(owner, other.Name) {
			continue
		}
		switch {
		case f.PublicIP != "" && strings.EqualFold(f.PublicIP, other.PublicIP),
			f.Static && strings.EqualFold(f.Subnet, other.Subnet) && f.PrivateIP == other.PrivateIP:
			return other.Name
		}
	}
	return ""
}

func renamed(rules []lb.Rule, from, to string) []lb.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].Frontend == from {
			rules[i].Frontend = to
		}
	}
	return rules
}

// compete reports the first rule of a Service that Azure would refuse beside another.
func compete(next lb.LoadBalancer, owner string) error {
	for _, r := range next.Rules {
		if !owns(owner, r.Name) {
			continue
		}
		for _, other := range next.Rules {
			if other.Name == r.Name {
				continue
			}
			if err := clash(r, other); err != nil {
				return err
			}
		}
	}
	return nil
}

var errSamePort = errors.New("the frontend is shared, and the port is taken")

func clash(r, other lb.Rule) error {
	both := r.Transport == other.Transport || r.Transport == lb.All || other.Transport == lb.All
	anyPort := r.Transport == lb.All || other.Transport == lb.All
	switch {
	case !both:
	case strings.EqualFold(r.Frontend, other.Frontend) && (anyPort || r.FrontendPort == other.FrontendPort):
		return fmt.Errorf("%w: rule %s of frontend %s already takes %s port %d", errSamePort, other.Name, r.Frontend, other.Transport, other.FrontendPort)
	case !r.FloatingIP && !other.FloatingIP && strings.EqualFold(r.Pool, other.Pool) && (anyPort || r.BackendPort == other.BackendPort):
		return fmt.Errorf("rule %s already sends %s flows to port %d of pool %s, and without floating IP no two rules may", other.Name, other.Transport, other.BackendPort, r.Pool)
	}
	return nil
}

// sweep takes out what is shared and nobody uses any more. The shared pools stay as long
// as the load balancer: other things than rules need its nodes.
func sweep(next *lb.LoadBalancer, in Input) {
	used := map[string]bool{}
	for _, r := range next.Rules {
		used[strings.ToLower(r.Probe)] = true
	}
	next.Probes = slices.DeleteFunc(next.Probes, func(p lb.Probe) bool {
		return contains(in.SharedProbes, p.Name) && !used[strings.ToLower(p.Name)]
	})
}

// bare reports whether nothing is left but shared pools that nobody refers to.
func bare(next lb.LoadBalancer, in Input) bool {
	return len(next.Frontends) == 0 && len(next.Rules) == 0 && len(next.Pinned) == 0 &&
		!slices.ContainsFunc(next.Pools, func(p lb.Pool) bool { return !contains(in.SharedPools, p.ID.Name) })
}

func clone(b lb.LoadBalancer) lb.LoadBalancer {
	b.Frontends, b.Pools = slices.Clone(b.Frontends), slices.Clone(b.Pools)
	b.Probes, b.Rules = slices.Clone(b.Probes), slices.Clone(b.Rules)
	b.Tags, b.Pinned = maps.Clone(b.Tags), maps.Clone(b.Pinned)
	return b
}
