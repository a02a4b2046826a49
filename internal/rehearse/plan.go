// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/service"
)

type planning struct {
	*Rehearsal
	cluster     Cluster
	scope       Scope
	adminStates bool
	requests    []balancer.Request
	outcome     Outcome
}

// Plan does what the controller would do if it started now. Failures in Azure are part of the
// result.
func Plan(ctx context.Context, r *Rehearsal, c Cluster, scope Scope, adminStates bool) (Outcome, error) {
	p := &planning{Rehearsal: r, cluster: c, scope: scope, adminStates: adminStates}
	p.outcome.Owners, p.outcome.NoEffect = map[string]string{}, map[string]string{}
	for _, step := range []func(context.Context) error{c.PlaceNodes, p.ask, p.play, p.fill} {
		// A canceled step looks like one without changes.
		if err := cmp.Or(step(ctx), ctx.Err()); err != nil {
			return Outcome{}, err
		}
	}
	p.outcome.Differences = r.Differences()
	p.outcome.Limits = LimitsOf(p.outcome.Differences, r.maxRules, r.maxLinks, r.interfaces)
	return p.outcome, nil
}

func (p *planning) ask(ctx context.Context) error {
	found := false
	for _, s := range p.cluster.Services() {
		p.outcome.Owners[s.Owner] = s.Key()
		if !p.scope.Has(s.Namespace, s.Name) {
			continue
		}
		found = true
		if err := p.askFor(ctx, s); err != nil {
			return fmt.Errorf("Service %s: %w", s.Key(), err)
		}
	}
	if p.scope.Service != "" && !found {
		return p.cluster.NotServed(p.scope.Namespace, p.scope.Service)
	}
	return nil
}

func (p *planning) askFor(ctx context.Context, s Service) error {
	unasked := func(u Unasked) {
		u.Service = s.Key()
		p.outcome.Unasked = append(p.outcome.Unasked, u)
	}
	if s.Kept != "" {
		unasked(Unasked{Kept: s.Kept})
		return nil
	}
	p.outcome.NoEffect[s.Key()] = s.NoEffect
	if s.Held != "" {
		unasked(Unasked{Held: s.Held})
		return nil
	}
	req, refused, err := p.cluster.Ask(ctx, s.Key())
	switch {
	case err != nil:
		return err
	case refused != "":
		unasked(Unasked{Refused: refused})
	case req.Service != "":
		p.requests = append(p.requests, req)
	}
	return nil
}

// play runs the requests and passes the results to the cluster.
func (p *planning) play(ctx context.Context) (err error) {
	if p.outcome.Results, err = p.Play(ctx, p.requests); err != nil {
		return err
	}
	for _, r := range p.outcome.Results {
		if err := p.cluster.Settle(ctx, r); err != nil {
			return fmt.Errorf("Service %s: %w", r.Service, err)
		}
	}
	return nil
}

func (p *planning) fill(ctx context.Context) error {
	for _, pool := range p.cluster.Pools() {
		if !p.concerns(pool) {
			continue
		}
		reason := pool.Left
		if reason == "" {
			var err error
			if reason, err = p.fillPool(ctx, pool); err != nil {
				return fmt.Errorf("BackendPool %s: %w", pool.BackendPool, err)
			}
		}
		if reason != "" {
			p.outcome.Left = append(p.outcome.Left, Left{pool.BackendPool, reason})
		}
	}
	return nil
}

// fillPool updates a pool, or returns why not.
func (p *planning) fillPool(ctx context.Context, pool Pool) (reason string, err error) {
	on, err := p.Shadow.GetLoadBalancer(ctx, pool.ID.LoadBalancer)
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return "load balancer " + pool.ID.LoadBalancer.Name + " is not there", nil
	}
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(on.Pools, func(is lb.Pool) bool { return strings.EqualFold(is.ID.Name, pool.ID.Name) })
	if at < 0 {
		return "load balancer " + on.ID.Name + " has no pool " + pool.ID.Name, nil
	}
	desired, err := p.cluster.Desired(pool.Ref)
	if err != nil {
		return "", err
	}
	if pool.Interfaces {
		return p.join(ctx, on.Pools[at], desired)
	}
	next, err := poolwrite.Rehearse(on.Pools[at], desired, p.adminStates)
	if err != nil {
		return err.Error(), nil
	}
	p.Shadow.PutPool(next)
	return "", nil
}

// join updates a pool of network interfaces, or returns why not.
func (r *Rehearsal) join(ctx context.Context, pool lb.Pool, desired poolwrite.Desired) (reason string, err error) {
	shown, err := r.Shadow.Machines(ctx, pool)
	if err != nil {
		return "", err
	}
	is, next, err := poolwrite.RehearseMembers(shown, desired)
	if err != nil {
		return err.Error(), nil
	}
	r.Shadow.ReadPool(is)
	r.Shadow.PutPool(next)
	return "", nil
}

// concerns reports whether a pool belongs to, or is used by, a Service in scope.
func (p *planning) concerns(pool Pool) bool {
	namespace, name, _ := strings.Cut(pool.Service, "/")
	if pool.Service != "" {
		return p.scope.Has(namespace, name)
	}
	if p.scope.Namespace == "" {
		return true
	}
	return slices.ContainsFunc(p.outcome.Results, func(r balancer.Result) bool {
		return r.Desired != nil && r.On.Key() == pool.ID.LoadBalancer.Key() &&
			slices.ContainsFunc(r.Pools, func(w service.Pool) bool { return strings.EqualFold(w.Name, pool.ID.Name) })
	})
}
