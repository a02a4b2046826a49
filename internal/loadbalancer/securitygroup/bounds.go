// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// usageTracker tracks the group's usage for Services before their load balancer is written. It is safe for
// concurrent use.
type usageTracker struct {
	// readSlot is a one-slot semaphore for the first read of the group.
	readSlot chan struct{}

	mu sync.Mutex // guards the fields below
	// usage is that of the last plan; nil before the first.
	usage *service.SecurityUsage
	// observed is the group as last read or written; without an etag before.
	observed lb.SecurityGroup
	// claims are the claims of admitted Services that are not written yet, by owner.
	claims map[string]service.SecurityClaim
}

// recordPlan records a plan, and clears the claims of its Services if it was written.
func (u *usageTracker) recordPlan(requests []*Request, observed lb.SecurityGroup, p service.SecurityPlan, written bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if written {
		observed.Rules = p.Next
	}
	u.observed = observed
	if u.usage = p.Before; !written {
		return
	}
	u.usage = p.After
	for _, r := range requests {
		delete(u.claims, r.Owner)
	}
}

func (u *usageTracker) forgetObserved() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.observed = lb.SecurityGroup{}
}

// ListObserved returns the group as last read or written; nothing before.
func (g *Group) ListObserved() []lb.SecurityGroup {
	g.usage.mu.Lock()
	defer g.usage.mu.Unlock()
	if g.usage.observed.Etag == "" {
		return nil
	}
	return []lb.SecurityGroup{g.usage.observed}
}

func (u *usageTracker) copyClaims() map[string]service.SecurityClaim {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.claims)
}

// reserveClaim checks a claim and reserves capacity for it.
func (u *usageTracker) reserveClaim(owner string, c service.SecurityClaim, check func(*service.SecurityUsage, map[string]service.SecurityClaim) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if claimed, ok := u.claims[owner]; ok && claimed.Includes(c) { // its load balancer may be written already, and the limit may have been lowered
		u.claims[owner] = c
		return nil
	}
	delete(u.claims, owner)
	if u.usage == nil {
		return nil
	}
	if err := check(u.usage, u.claims); err != nil {
		return err
	}
	if u.claims == nil {
		u.claims = map[string]service.SecurityClaim{}
	}
	u.claims[owner] = c
	return nil
}

func (u *usageTracker) hasPlan() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.usage != nil
}

// CheckCapacity returns why the group would reject a Service: it exceeds a limit of its namespace, or the group is
// full. Call it before creating anything: a restricted Service must not be published without its rules.
func (g *Group) CheckCapacity(ctx context.Context, name, owner string, w *service.Spec) error {
	c := service.NewSecurityClaim(namespaceOf(name), g.expectedRules(w))
	if w.Access.IsLimited() && !w.Access.NoSecurityRules {
		if err := g.readOnce(ctx); err != nil {
			return err
		}
	}
	err := g.usage.reserveClaim(owner, c, func(u *service.SecurityUsage, claimed map[string]service.SecurityClaim) error {
		return u.CheckClaim(owner, c, claimed, g.cfg.Cluster.NamespaceBounds(c.Namespace))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", g.displayName(), err)
	}
	return nil
}

// expectedRules returns the admissions of a Service with placeholder addresses.
func (g *Group) expectedRules(w *service.Spec) []service.AccessRule {
	var addresses []netip.Addr
	for _, f := range w.Frontends {
		a := netip.AddrFrom4([4]byte{192, 0, 2, 1})
		if f.Frontend.Family == lb.IPv6 {
			a = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})
		}
		addresses = append(addresses, a)
	}
	var nodes []netip.Addr
	if w.NodePorts() != nil {
		nodes = g.cfg.Cluster.NodeAddresses()
	}
	return w.AccessRules(addresses, nodes)
}

// readOnce reads the group once before the first plan. Read errors are ignored: the write of the rules reports
// them.
func (g *Group) readOnce(ctx context.Context) error {
	select {
	case g.usage.readSlot <- struct{}{}:
		defer func() { <-g.usage.readSlot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.usage.hasPlan() {
		return nil
	}
	observed, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	in := service.SecurityInput{Observed: observed.Rules, Managed: map[netip.Addr]bool{}}
	for _, n := range g.cfg.Cluster.NodeAddresses() {
		in.Managed[n] = true
	}
	for _, r := range g.cfg.Cluster.ExposedServices() {
		in.Shares = append(in.Shares, fixedShare(r))
		for _, a := range r.Addresses {
			in.Managed[a] = true
		}
	}
	usage := service.ObservedSecurityUsage(in)
	g.usage.mu.Lock()
	defer g.usage.mu.Unlock()
	if g.usage.usage == nil {
		g.usage.usage = usage
	}
	return nil
}

// ForgetService drops the capacity reserved for a Service, by owner.
func (g *Group) ForgetService(owner string) {
	g.usage.mu.Lock()
	defer g.usage.mu.Unlock()
	delete(g.usage.claims, owner)
}
