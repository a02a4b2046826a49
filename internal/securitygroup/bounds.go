// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/service"
)

// ledger tracks the group's usage for Services before their load balancer is written. It is safe for
// concurrent use.
type ledger struct {
	// reading is a one-slot semaphore for the first read of the group.
	reading chan struct{}

	mu sync.Mutex // guards the fields below
	// usage is that of the last plan; nil before the first.
	usage *nsg.Usage
	// promised are the claims of admitted Services that are not written yet, by owner.
	promised map[string]nsg.Claim
}

// wrote records a plan, and clears the claims of its Services if it was written.
func (l *ledger) wrote(requests []*Request, p nsg.Plan, written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usage = p.Before; !written {
		return
	}
	l.usage = p.After
	for _, r := range requests {
		delete(l.promised, r.Owner)
	}
}

func (l *ledger) promises() map[string]nsg.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.promised)
}

// admits checks a claim and reserves capacity for it.
func (l *ledger) admits(owner string, c nsg.Claim, check func(*nsg.Usage, map[string]nsg.Claim) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if promised, is := l.promised[owner]; is && promised.Covers(c) { // its load balancer may be written already, and the limit may have been lowered
		l.promised[owner] = c
		return nil
	}
	delete(l.promised, owner)
	if l.usage == nil {
		return nil
	}
	if err := check(l.usage, l.promised); err != nil {
		return err
	}
	if l.promised == nil {
		l.promised = map[string]nsg.Claim{}
	}
	l.promised[owner] = c
	return nil
}

func (l *ledger) known() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage != nil
}

// Admits returns why the group would reject a Service: it exceeds a limit of its namespace, or the group is
// full. Call it before creating anything: a restricted Service must not be published without its rules.
func (g *Group) Admits(ctx context.Context, name, owner string, w *service.Spec) error {
	c := nsg.ClaimOf(namespaceOf(name), g.expected(w))
	if w.Access.Limited() && !w.Access.Unruled {
		if err := g.look(ctx); err != nil {
			return err
		}
	}
	err := g.room.admits(owner, c, func(u *nsg.Usage, promised map[string]nsg.Claim) error {
		return u.Admits(owner, c, promised, g.cfg.Cluster.Bounds(c.Namespace))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", g.name(), err)
	}
	return nil
}

// expected returns the admissions of a Service with placeholder addresses.
func (g *Group) expected(w *service.Spec) []nsg.Admission {
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
		nodes = g.cfg.Cluster.Nodes()
	}
	return w.Admissions(addresses, nodes)
}

// look reads the group once before the first plan. Read errors are ignored: the write of the rules reports
// them.
func (g *Group) look(ctx context.Context) error {
	select {
	case g.room.reading <- struct{}{}:
		defer func() { <-g.room.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.room.known() {
		return nil
	}
	observed, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	in := nsg.Input{Observed: observed.Rules, Ours: map[netip.Addr]bool{}}
	for _, n := range g.cfg.Cluster.Nodes() {
		in.Ours[n] = true
	}
	for _, r := range g.cfg.Cluster.Reached() {
		in.Shares = append(in.Shares, fixedShare(r))
		for _, a := range r.Addresses {
			in.Ours[a] = true
		}
	}
	usage := nsg.Observe(in)
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	if g.room.usage == nil {
		g.room.usage = usage
	}
	return nil
}

// Forget drops the capacity reserved for a Service, by owner.
func (g *Group) Forget(owner string) {
	g.room.mu.Lock()
	defer g.room.mu.Unlock()
	delete(g.room.promised, owner)
}
