// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/service"
)

// Demand is what a Service wants of the security group.
type Demand struct {
	// Service is its namespace and name, with a slash, and Owner the first part of the names of
	// all that is the Service's.
	Service, Owner string
	Desired        *service.Spec // nil if it leaves
	// Addresses are those of its frontends, Shown those that its status showed, and Had others
	// that it had, or still has while it leaves.
	Addresses, Shown, Had []netip.Addr
	// On is the load balancer where it belongs.
	On lb.LoadBalancerID
	// Again is what a person wrote who wants a contest to be taken up again.
	Again string
	// Closes is true if the group is only closed to clients whom the Access of Desired does not admit. The
	// frontends and rules of Desired are those that the Service has now.
	Closes bool
}

// Request is the Demand of a Service that is due, and what came of it.
type Request struct {
	Demand
	// Err is why the group holds nothing for it.
	Err error
	// Changed is true if somebody was let in at its addresses, or kept out, who was not or was.
	Changed bool
	// Note is what people should know although all went well; empty for nothing.
	Note string
	// Contest is the one about its rules; nil if there is none.
	Contest *contest.Contest
}

// Knows reports whether this process has written the group for all that a Service wants: then it knows where it is
// open for it.
func (g *Group) Knows(owner string) bool {
	d, ok := g.known[owner]
	return ok && !d.Closes
}

// completeClosing adds to a Demand that closes what the group is known to hold for the Service.
func (g *Group) completeClosing(d Demand) Demand {
	known, ok := g.known[d.Owner]
	if !d.Closes || !ok {
		return d
	}
	d.Had = slices.Concat(d.Had, known.Addresses, known.Shown, known.Had)
	if known.Desired == nil || known.Closes {
		return d
	}
	spec := *known.Desired
	spec.Internal, spec.Access = d.Desired.Internal, d.Desired.Access
	spec.Access.Additional = known.Desired.Access.Additional
	d.Desired, d.Addresses, d.On = &spec, known.Addresses, known.On
	return d
}

func (d Demand) asked() contest.Asked {
	return contest.Asked{Desired: d.Desired, On: d.On.Key(), Again: d.Again}
}

// admissions are what a Service asks for.
func (g *Group) admissions(d Demand) []nsg.Admission {
	nodes, _ := g.cfg.Cluster.NodesOf(d.On, d.Desired.OwnPools())
	return d.Desired.Admissions(d.Addresses, nodes)
}

// demands are the Services of which it is known what they want, those that are due included.
func (g *Group) demands(due []*Request) map[string]Demand {
	all := map[string]Demand{}
	for owner, d := range g.known {
		all[owner] = d
	}
	for _, r := range due {
		all[r.Owner] = r.Demand
	}
	for owner, d := range all {
		if d.Desired == nil {
			delete(all, owner)
		}
	}
	return all
}

// Unenforced returns why the group would keep nobody from a Service that says who may connect, if
// such Services are to be refused: before anything is made for it. Otherwise the Service is
// served, and told; see note.
func (g *Group) Unenforced(ctx context.Context, access service.Access) error {
	if !g.cfg.RequireEffective || access.Unruled || !access.Limited() {
		return nil
	}
	const way = "; requireEffectiveRestrictions of azure.json refuses Services that say who may connect until that is mended"
	shown, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale:
		return fmt.Errorf("resource group %s has no %s%s", g.cfg.ID.ResourceGroup, g.name(), way)
	case err != nil:
		return fmt.Errorf("%s: %w", g.name(), err)
	case shown.Subnets+shown.Interfaces == 0:
		return errors.New(g.name() + " is on no subnet and on no network interface: its rules have no effect" + way)
	}
	return nil
}
