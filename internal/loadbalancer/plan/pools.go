// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// RetainedPart is a pool or frontend retained for foreign parts.
type RetainedPart struct {
	Pool lb.PoolID
	// Owner is the owner of the Service; empty for a shared pool, which retains its load balancer, or cannot be
	// converted.
	Owner        string
	IsConversion bool
	// Reason is the reason if it is not a member.
	Reason string
	// Frontend is the frontend that Azure requires; nil for a pool.
	Frontend *lb.Frontend
	Members  []string
}

// DrainingPool is a pool that blocks the deletion of its load balancer until its network interfaces have left, or a
// shared pool that is being converted.
type DrainingPool struct {
	Pool       lb.PoolID
	Interfaces int
	// Interim is the temporary replacement of a pool being converted. Rules is the number of rules still on the
	// old pool; its members remain until it is 0.
	Interim string
	Rules   int
	// ToInterfaces is set if the converted pool is to hold network interfaces.
	ToInterfaces bool
}

// ConversionKinds returns the kinds before and after a conversion.
func (d DrainingPool) ConversionKinds() (from, to string) {
	if from, to = "network interfaces", "addresses"; d.ToInterfaces {
		return to, from
	}
	return from, to
}

// String returns what is waited for.
func (d DrainingPool) String() string {
	interfaces := fmt.Sprintf("its %d network interfaces have", d.Interfaces)
	switch d.Interfaces {
	case 0: // a scale set model or a starting machine may still refer to the pool
		interfaces = "its network interfaces have"
	case 1:
		interfaces = "its network interface has"
	}
	if d.Interim != "" {
		from, to := d.ConversionKinds()
		return fmt.Sprintf("backend pool %s of load balancer %s changes from %s to %s; until it is filled again, flows use backend pool %s",
			d.Pool.Name, d.Pool.LoadBalancer.Name, from, to, d.Interim)
	}
	return fmt.Sprintf("load balancer %s is deleted when %s left backend pool %s", d.Pool.LoadBalancer.Name, interfaces, d.Pool.Name)
}

const maxMembers = 5

// String returns what is retained, why, and the remedy.
func (r RetainedPart) String() string {
	text, verb := strings.Join(r.Members[:min(len(r.Members), maxMembers)], ", "), "belongs"
	if more := len(r.Members) - maxMembers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(r.Members) > 1 {
		verb = "belong"
	}
	switch {
	case r.Frontend != nil && r.Reason != "":
		return fmt.Sprintf("%s of load balancer %s is no longer needed and is retained without rules of the Service: %s. "+
			"Its owner has to delete it. Then Weir deletes the frontend; if the Service is deleted by then and Weir did not create the public IP, delete the frontend yourself",
			describeFrontend(*r.Frontend), r.Pool.LoadBalancer.Name, r.Reason)
	case r.Frontend != nil:
		return fmt.Sprintf("%s of load balancer %s is no longer needed and is retained without rules: Azure requires it while the load balancer has %s. "+
			"It is deleted with that, or when another frontend exists", describeFrontend(*r.Frontend), r.Pool.LoadBalancer.Name, text)
	}
	part := "backend pool " + r.Pool.Name + " of load balancer " + r.Pool.LoadBalancer.Name
	if r.IsConversion {
		part += " does not change its kind of members, and remains unchanged: "
		if r.Reason != "" {
			return part + r.Reason
		}
		return part + text + " in it " + verb + " to another owner, which has to remove it"
	}
	if r.Reason != "" {
		return part + " is no longer needed and is retained: " + r.Reason + ". Its owner has to delete it"
	}
	if r.Owner == "" {
		part = "load balancer " + r.Pool.LoadBalancer.Name + " with its backend pool " + r.Pool.Name
	}
	return part + " is no longer needed and is retained: " + text + " in it " + verb +
		" to another owner, which has to remove it, or delete the pool"
}

// removePools deletes the Service's own pools that are no longer needed, unless they hold foreign members. The pools of
// its former rules, in old, prove the owner.
func (p *Plan) removePools(in Input, s ServiceParts, old []string) {
	p.Next.Pools = slices.DeleteFunc(p.Next.Pools, func(pool lb.Pool) bool {
		name := pool.ID.Name
		if !in.isOwnPool(s, name) || containsName(poolNames(s.Pools), name) {
			return false
		}
		foreign := in.ForeignMembers[strings.ToLower(name)]
		if poolInUse(p.Next, pool) {
			reason := in.foreignUse(p.Next, pool)
			if reason != "" && (containsName(old, name) || containsName(s.ManagedPools, name) || containsName(s.RecordedPools, name)) {
				p.RetainedParts = append(p.RetainedParts, RetainedPart{Pool: lb.PoolID{LoadBalancer: in.Observed.ID, Name: name}, Owner: s.Owner, Reason: reason})
			}
			return false
		}
		belongs := containsName(old, name) || containsName(s.ManagedPools, name) || len(pool.Addresses) == 0
		if len(foreign) > 0 && (belongs || containsName(s.RecordedPools, name)) {
			p.retainPart(in, s.Owner, name, foreign)
			return false
		}
		return belongs
	})
}

func (in Input) foreignUse(next lb.LoadBalancer, pool lb.Pool) string {
	due, others := indexServices(in.Services), indexOwners(in.Others)
	for _, r := range next.Rules {
		if strings.EqualFold(r.Pool, pool.ID.Name) && due.ownerOf(r.Name) == "" && others.ownerOf(r.Name) == "" {
			return "rule " + r.Name + " sends flows to it and is of no Service of this cluster"
		}
	}
	if next.Pinned[strings.ToLower(pool.ID.Name)] {
		return pinnedReason
	}
	return ""
}

const pinnedReason = "an outbound or inbound NAT rule refers to it"

// retainPinned reports frontends of Services that are retained only because a part other than a rule refers to
// them.
func (p *Plan) retainPinned(accepted []ServiceParts) {
	for _, f := range p.Next.Frontends {
		if !p.Next.Pinned[strings.ToLower(f.Name)] || slices.ContainsFunc(p.Next.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Frontend, f.Name) }) {
			continue
		}
		for _, s := range accepted {
			if hasOwner(s.Owner, f.Name) && !slices.ContainsFunc(s.Frontends, func(w lb.Frontend) bool { return placeOf(w) == placeOf(f) }) {
				p.RetainedParts = append(p.RetainedParts, RetainedPart{Pool: lb.PoolID{LoadBalancer: p.Next.ID}, Owner: s.Owner, Frontend: &f, Reason: pinnedReason})
			}
		}
	}
}

// removeReplaced deletes replaced shared pools without rules, and empty pools left for other owners. Foreign members
// and network interfaces retain a pool.
func (p *Plan) removeReplaced(in Input) {
	p.Next.Pools = slices.DeleteFunc(p.Next.Pools, func(pool lb.Pool) bool {
		retired := containsName(in.ReplacedPools, pool.ID.Name) && len(in.ForeignMembers[strings.ToLower(pool.ID.Name)]) == 0
		leftEmpty := containsName(in.LeftPools, pool.ID.Name) && len(pool.Addresses) == 0 && !slices.ContainsFunc(in.Services, func(s ServiceParts) bool {
			return containsName(poolNames(s.Pools), pool.ID.Name)
		})
		return (retired || leftEmpty) && !poolInUse(p.Next, pool)
	})
}

// isWanted reports whether an otherwise empty load balancer must remain: its shared pools contain foreign
// members, or Weir's own have not left.
func (p *Plan) isWanted(in Input) bool {
	keeps := false
	for _, pool := range p.Next.Pools {
		if !containsName(in.SharedPools, pool.ID.Name) {
			continue
		}
		name := strings.ToLower(pool.ID.Name)
		if foreign := in.ForeignMembers[name]; len(foreign) > 0 {
			p.retainPart(in, "", pool.ID.Name, foreign)
			keeps = true
		}
		if n, empties := in.RemainingInterfaces[name]; empties {
			p.DrainingPools = append(p.DrainingPools, DrainingPool{Pool: lb.PoolID{LoadBalancer: in.Observed.ID, Name: pool.ID.Name}, Interfaces: n})
			keeps = true
		}
	}
	return keeps
}

func (p *Plan) retainPart(in Input, owner, name string, foreign []string) {
	id := lb.PoolID{LoadBalancer: in.Observed.ID, Name: name}
	p.RetainedParts = append(p.RetainedParts, RetainedPart{Pool: id, Owner: owner, Members: foreign})
}
