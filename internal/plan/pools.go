// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Kept is a pool or a frontend that would go, and stays for what others have made.
type Kept struct {
	Pool lb.PoolID
	// Owner is the owner of the Service that it was of; empty for a shared pool, which keeps
	// its load balancer, or its kind if it is Converting.
	Owner      string
	Converting bool
	// Why keeps it, where that is no member.
	Why string
	// Frontend is the frontend that stays because Azure requires one for Members, or for Why; nil for a pool.
	Frontend *lb.Frontend
	// Members are those that are not Weir's, for people.
	Members []string
}

// Emptying is a pool that keeps its load balancer until its network interfaces have left: Azure does
// not delete one with members. Or it is a shared pool of the other kind of members than it is to be.
type Emptying struct {
	Pool lb.PoolID
	// Interfaces is how many of Weir's are in it yet.
	Interfaces int
	// Interim is the name of the pool that stands in for one of the other kind, and Rules how many rules
	// send flows to the old one yet; nothing leaves it before they have gone.
	Interim string
	Rules   int
	// Joined is whether it is to hold network interfaces then.
	Joined bool
}

// Becomes says from what a pool of the other kind goes to what.
func (e Emptying) Becomes() (from, to string) {
	if from, to = "network interfaces", "addresses"; e.Joined {
		return to, from
	}
	return from, to
}

// String says what is waited for.
func (e Emptying) String() string {
	interfaces := fmt.Sprintf("its %d network interfaces have", e.Interfaces)
	switch e.Interfaces {
	case 0: // a scale set may name the pool yet, or a machine that is on its way
		interfaces = "its network interfaces have"
	case 1:
		interfaces = "its network interface has"
	}
	if e.Interim != "" {
		from, to := e.Becomes()
		return fmt.Sprintf("backend pool %s of load balancer %s goes from %s to %s; until it is filled again, flows go by backend pool %s",
			e.Pool.Name, e.Pool.LoadBalancer.Name, from, to, e.Interim)
	}
	return fmt.Sprintf("load balancer %s is deleted when %s left backend pool %s", e.Pool.LoadBalancer.Name, interfaces, e.Pool.Name)
}

// mostMembers is how many members a sentence has.
const mostMembers = 5

// String says what stays and why, and what to do about it.
func (k Kept) String() string {
	text, verb := strings.Join(k.Members[:min(len(k.Members), mostMembers)], ", "), "is"
	if more := len(k.Members) - mostMembers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(k.Members) > 1 {
		verb = "are"
	}
	switch {
	case k.Frontend != nil && k.Why != "":
		return fmt.Sprintf("%s of load balancer %s is not needed any more and stays without rules of the Service, for %s. "+
			"Whoever made that has to delete it. Then the frontend goes as well; if the Service is deleted by then and Weir did not make the public IP, delete the frontend yourself",
			describe(*k.Frontend), k.Pool.LoadBalancer.Name, k.Why)
	case k.Frontend != nil:
		return fmt.Sprintf("%s of load balancer %s is not needed any more and stays without rules: Azure requires it while the load balancer has %s. "+
			"It goes with that, or once another frontend serves for it", describe(*k.Frontend), k.Pool.LoadBalancer.Name, text)
	}
	what := "backend pool " + k.Pool.Name + " of load balancer " + k.Pool.LoadBalancer.Name
	if k.Converting {
		what += " does not go from one kind of members to the other, and stays as it is, for "
		if k.Why != "" {
			return what + k.Why
		}
		return what + text + " in it " + verb + " somebody else's. Whoever put that there has to take it out"
	}
	if k.Why != "" {
		return what + " is not needed any more and stays, for " + k.Why + ". Whoever made that has to delete it"
	}
	if k.Owner == "" {
		what = "load balancer " + k.Pool.LoadBalancer.Name + " with its backend pool " + k.Pool.Name
	}
	return what + " is not needed any more and stays, for " + text + " in it " + verb +
		" somebody else's. Whoever put that there has to take it out, or delete what stays"
}

// let takes out the pools of a Service's own that it needs no more; had are those that its
// rules sent flows to, by which it is known whose they are. What others have put into one
// keeps it.
func (p *Plan) let(in Input, s Share, had []string) {
	p.Next.Pools = slices.DeleteFunc(p.Next.Pools, func(is lb.Pool) bool {
		name := is.ID.Name
		if !contains(s.OwnPools, name) || contains(in.SharedPools, name) || contains(poolNames(s.Pools), name) {
			return false
		}
		foreign := in.Foreign[strings.ToLower(name)]
		if poolInUse(p.Next, is) {
			why := in.foreignUse(p.Next, is)
			if why != "" && (contains(had, name) || contains(s.MadePools, name) || contains(s.HeldPools, name)) {
				p.Kept = append(p.Kept, Kept{Pool: lb.PoolID{LoadBalancer: in.Observed.ID, Name: name}, Owner: s.Owner, Why: why})
			}
			return false
		}
		its := contains(had, name) || contains(s.MadePools, name) || len(is.Addresses) == 0
		if len(foreign) > 0 && (its || contains(s.HeldPools, name)) {
			p.keep(in, s.Owner, name, foreign)
			return false
		}
		return its
	})
}

// foreignUse names what refers to a pool and is of no Service; empty for nothing.
func (in Input) foreignUse(next lb.LoadBalancer, is lb.Pool) string {
	due, others := rosterIn(in.Shares), rosterOf(in.Others)
	for _, r := range next.Rules {
		if strings.EqualFold(r.Pool, is.ID.Name) && due.owner(r.Name) == "" && others.owner(r.Name) == "" {
			return "rule " + r.Name + " sends flows to it and is of no Service of this cluster"
		}
	}
	if next.Pinned[strings.ToLower(is.ID.Name)] {
		return pinnedBy
	}
	return ""
}

// pinnedBy is why a pinned frontend or pool stays.
const pinnedBy = "an outbound or inbound NAT rule refers to it"

// keepPinned tells of the frontends of Services that stay only because something else than a rule refers to them.
func (p *Plan) keepPinned(accepted []Share) {
	for _, f := range p.Next.Frontends {
		if !p.Next.Pinned[strings.ToLower(f.Name)] || slices.ContainsFunc(p.Next.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Frontend, f.Name) }) {
			continue
		}
		for _, s := range accepted {
			if owns(s.Owner, f.Name) && !slices.ContainsFunc(s.Frontends, func(w lb.Frontend) bool { return place(w) == place(f) }) {
				p.Kept = append(p.Kept, Kept{Pool: lb.PoolID{LoadBalancer: p.Next.ID}, Owner: s.Owner, Frontend: &f, Why: pinnedBy})
			}
		}
	}
}

// retire takes out the shared pools in whose place another one is, once no rule refers to them, and the pools that
// Weir left to others, once they are empty. What others have put into one keeps it, as do network interfaces.
func (p *Plan) retire(in Input) {
	p.Next.Pools = slices.DeleteFunc(p.Next.Pools, func(is lb.Pool) bool {
		retired := contains(in.Retired, is.ID.Name) && len(in.Foreign[strings.ToLower(is.ID.Name)]) == 0
		left := contains(in.Left, is.ID.Name) && len(is.Addresses) == 0 && !slices.ContainsFunc(in.Shares, func(s Share) bool {
			return contains(poolNames(s.Pools), is.ID.Name)
		})
		return (retired || left) && !poolInUse(p.Next, is)
	})
}

// keepsBalancer reports whether a load balancer on which nothing else is left stays: others have put
// something into its shared pools, or Weir's own has not left them yet.
func (p *Plan) keepsBalancer(in Input) bool {
	keeps := false
	for _, is := range p.Next.Pools {
		if !contains(in.SharedPools, is.ID.Name) {
			continue
		}
		name := strings.ToLower(is.ID.Name)
		if foreign := in.Foreign[name]; len(foreign) > 0 {
			p.keep(in, "", is.ID.Name, foreign)
			keeps = true
		}
		if n, empties := in.Emptying[name]; empties {
			p.Emptying = append(p.Emptying, Emptying{Pool: lb.PoolID{LoadBalancer: in.Observed.ID, Name: is.ID.Name}, Interfaces: n})
			keeps = true
		}
	}
	return keeps
}

func (p *Plan) keep(in Input, owner, name string, foreign []string) {
	id := lb.PoolID{LoadBalancer: in.Observed.ID, Name: name}
	p.Kept = append(p.Kept, Kept{Pool: id, Owner: owner, Members: foreign})
}
