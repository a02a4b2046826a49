// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// Demand is what a Service needs from the security group.
type Demand struct {
	// Service is namespace/name, and Owner the name prefix of its Azure resources.
	Service, Owner string
	Desired        *service.Spec // nil if it is removed
	// Addresses are those of its frontends, then those of its status, and others that it had or still has.
	Addresses, Published, Former []netip.Addr
	// On is its load balancer. AnyNode is true if rules there still use a pool of the Service's own, which may have
	// nodes of other load balancers, though Desired has the pool of all nodes.
	On      lb.LoadBalancerID
	AnyNode bool
	// RetryToken is the user's token to retry after a conflict.
	RetryToken string
	// ClosesOnly is true if the group is only closed to clients that the Access of Desired does not admit. The
	// frontends and rules of Desired are the current ones.
	ClosesOnly bool
}

// Request is the Demand of a due Service and its result.
type Request struct {
	Demand
	// Err is why its rules are not written.
	Err error
	// Changed is true if rules changed at its addresses.
	Changed bool
	// Warning is a warning despite success, or "".
	Warning string
	// Conflict is the conflict about its rules, or nil.
	Conflict *conflict.Conflict
}

// HasWritten reports whether this process has written all rules of a Service, so its places are known.
func (g *Group) HasWritten(owner string) bool {
	d, ok := g.known[owner]
	return ok && !d.ClosesOnly
}

// completeClosing adds the known places of the Service to a closing Demand.
func (g *Group) completeClosing(d Demand) Demand {
	known, ok := g.known[d.Owner]
	if !d.ClosesOnly || !ok {
		return d
	}
	d.Former = slices.Concat(d.Former, known.Addresses, known.Published, known.Former)
	if known.Desired == nil || known.ClosesOnly {
		return d
	}
	spec := *known.Desired
	spec.Internal, spec.Access = d.Desired.Internal, d.Desired.Access
	spec.Access.Additional = known.Desired.Access.Additional
	d.Desired, d.Addresses, d.On, d.AnyNode = &spec, known.Addresses, known.On, known.AnyNode
	return d
}

func (d Demand) desiredKey() conflict.DesiredKey {
	return conflict.DesiredKey{Desired: d.Desired, LoadBalancer: d.On.Key(), RetryToken: d.RetryToken}
}

// needsAnyNode reports whether flows may reach nodes of other load balancers.
func (d Demand) needsAnyNode() bool { return d.AnyNode || d.Desired.HasDedicatedPools() }

func (g *Group) accessRules(d Demand) []service.AccessRule {
	nodes, _ := g.cfg.Cluster.NodesOf(d.On, d.needsAnyNode())
	return d.Desired.AccessRules(d.Addresses, nodes)
}

func (g *Group) knownDemands(due []*Request) map[string]Demand {
	demands := map[string]Demand{}
	for owner, d := range g.known {
		demands[owner] = d
	}
	for _, r := range due {
		demands[r.Owner] = r.Demand
	}
	for owner, d := range demands {
		if d.Desired == nil {
			delete(demands, owner)
		}
	}
	return demands
}

// CheckEffective returns why a restricted Service must be rejected because the group is not effective, before
// anything is created. Without RequireEffective the Service is served with a warning.
func (g *Group) CheckEffective(ctx context.Context, access service.Access) error {
	if !g.cfg.RequireEffective || access.NoSecurityRules || !access.IsLimited() {
		return nil
	}
	const hint = "; requireEffectiveRestrictions of azure.json rejects Services with source restrictions until that is fixed"
	observed, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale:
		return fmt.Errorf("resource group %s has no %s%s", g.cfg.ID.ResourceGroup, g.displayName(), hint)
	case err != nil:
		return fmt.Errorf("%s: %w", g.displayName(), err)
	case observed.Subnets+observed.Interfaces == 0:
		return errors.New(g.displayName() + " is on no subnet and on no network interface: its rules have no effect" + hint)
	}
	return nil
}
