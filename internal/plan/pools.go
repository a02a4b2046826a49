// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Kept is a pool that would go, and stays because somebody else has put addresses into it.
type Kept struct {
	Pool lb.PoolID
	// Owner is the owner of the Service that it was of; empty for a shared pool, which keeps
	// its load balancer.
	Owner string
	// Addresses are those that are not Weir's.
	Addresses []netip.Addr
}

// mostAddresses is how many addresses a sentence has.
const mostAddresses = 5

// String says what stays and why, and what to do about it.
func (k Kept) String() string {
	var names []string
	for _, ip := range k.Addresses[:min(len(k.Addresses), mostAddresses)] {
		names = append(names, ip.String())
	}
	text, verb := strings.Join(names, ", "), "is"
	if more := len(k.Addresses) - mostAddresses; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(k.Addresses) > 1 {
		verb = "are"
	}
	what := "backend pool " + k.Pool.Name + " of load balancer " + k.Pool.LoadBalancer.Name
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
		if !contains(s.OwnPools, name) || contains(poolNames(s.Pools), name) || poolInUse(p.Next, is) {
			return false
		}
		its := contains(had, name) || contains(s.MadePools, name) || len(is.Addresses) == 0
		foreign := in.Foreign[strings.ToLower(name)]
		if len(foreign) > 0 && (its || contains(s.HeldPools, name)) {
			p.keep(in, s.Owner, name, foreign)
			return false
		}
		return its
	})
}

// keepsBalancer reports whether a load balancer on which nothing else is left stays, for
// others have put addresses into its shared pools.
func (p *Plan) keepsBalancer(in Input) bool {
	keeps := false
	for _, is := range p.Next.Pools {
		if foreign := in.Foreign[strings.ToLower(is.ID.Name)]; len(foreign) > 0 && contains(in.SharedPools, is.ID.Name) {
			p.keep(in, "", is.ID.Name, foreign)
			keeps = true
		}
	}
	return keeps
}

func (p *Plan) keep(in Input, owner, name string, foreign []netip.Addr) {
	id := lb.PoolID{LoadBalancer: in.Observed.ID, Name: name}
	p.Kept = append(p.Kept, Kept{Pool: id, Owner: owner, Addresses: foreign})
}
