// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/service"
)

type planner struct {
	*Simulator
	cluster     Cluster
	scope       Scope
	adminStates bool
	requests    []loadbalancer.Request
	result      PlanResult
}

// Plan does what the controller would do if it started now. Failures in Azure are part of the
// result.
func Plan(ctx context.Context, r *Simulator, c Cluster, scope Scope, adminStates bool) (PlanResult, error) {
	p := &planner{Simulator: r, cluster: c, scope: scope, adminStates: adminStates}
	p.result.Owners, p.result.NoEffect = map[string]string{}, map[string]string{}
	for _, step := range []func(context.Context) error{c.PlaceNodes, p.buildRequests, p.runRequests, p.updatePools} {
		// A canceled step looks like one without changes.
		if err := cmp.Or(step(ctx), ctx.Err()); err != nil {
			return PlanResult{}, err
		}
	}
	p.result.Changes = r.ListChanges()
	p.result.Limits = LimitsOf(p.result.Changes, r.maxRules, r.maxLinks, r.usesInterfaces(p.result.Changes))
	return p.result, nil
}

func (p *planner) buildRequests(ctx context.Context) error {
	found := false
	for _, s := range p.cluster.Services() {
		p.result.Owners[s.Owner] = s.Key()
		if !p.scope.HasService(s.Namespace, s.Name) {
			continue
		}
		found = true
		if err := p.buildRequest(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", service.DescribeOwner(s.Key()), err)
		}
	}
	if p.scope.Service != "" && !found {
		return p.cluster.UnmanagedReason(p.scope.Namespace, p.scope.Service)
	}
	return nil
}

func (p *planner) buildRequest(ctx context.Context, s Service) error {
	unasked := func(u SkippedService) {
		u.Service = s.Key()
		p.result.SkippedServices = append(p.result.SkippedServices, u)
	}
	if s.RetainedReason != "" {
		unasked(SkippedService{RetainedReason: s.RetainedReason})
		return nil
	}
	p.result.NoEffect[s.Key()] = s.NoEffect
	if s.BlockedReason != "" {
		unasked(SkippedService{BlockedReason: s.BlockedReason})
		return nil
	}
	req, refused, err := p.cluster.BuildRequest(ctx, s.Key())
	switch {
	case err != nil:
		return err
	case refused != "":
		unasked(SkippedService{RejectedReason: refused})
	case req.Service != "":
		p.requests = append(p.requests, req)
	}
	return nil
}

// runRequests runs the requests and passes the results to the cluster.
func (p *planner) runRequests(ctx context.Context) (err error) {
	if p.result.Results, err = p.RunRequests(ctx, p.requests); err != nil {
		return err
	}
	for _, r := range p.result.Results {
		if err := p.cluster.ResolveResult(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", service.DescribeOwner(r.Service), err)
		}
	}
	return nil
}

func (p *planner) updatePools(ctx context.Context) error {
	for _, pool := range p.cluster.Pools() {
		if !p.isInScope(pool) {
			continue
		}
		reason := pool.SkippedReason
		if reason == "" {
			var err error
			if reason, err = p.updatePool(ctx, pool); err != nil {
				return fmt.Errorf("BackendPool %s: %w", pool.BackendPool, err)
			}
		}
		if reason != "" {
			p.result.SkippedPools = append(p.result.SkippedPools, SkippedPool{pool.BackendPool, reason})
		}
	}
	return nil
}

// updatePool updates a pool, or returns why not.
func (p *planner) updatePool(ctx context.Context, pool Pool) (reason string, err error) {
	on, err := p.Shadow.GetLoadBalancer(ctx, pool.ID.LoadBalancer)
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		return "load balancer " + pool.ID.LoadBalancer.Name + " is not there", nil
	}
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(on.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, pool.ID.Name) })
	if at < 0 {
		return "load balancer " + on.ID.Name + " has no pool " + pool.ID.Name, nil
	}
	desired, err := p.cluster.DesiredPool(pool.Ref)
	if err != nil {
		return "", err
	}
	if pool.Interfaces {
		return p.updateMembers(ctx, on.Pools[at], desired)
	}
	next, err := diff.DryRun(on.Pools[at], desired, p.adminStates)
	if err != nil {
		return err.Error(), nil
	}
	p.Shadow.PutPool(next)
	return "", nil
}

// updateMembers updates a pool of network interfaces, or returns why not.
func (s *Simulator) updateMembers(ctx context.Context, pool lb.Pool, desired diff.Desired) (reason string, err error) {
	shown, err := s.Shadow.ResolveMachines(ctx, pool)
	if err != nil {
		return "", err
	}
	before, next, err := diff.DryRunMembers(shown, desired)
	if err != nil {
		return err.Error(), nil
	}
	s.Shadow.ReadPool(before)
	s.Shadow.PutPool(next)
	return "", nil
}

// isInScope reports whether a pool belongs to, or is used by, a Service in scope.
func (p *planner) isInScope(pool Pool) bool {
	namespace, name, _ := strings.Cut(pool.Service, "/")
	if pool.Service != "" {
		return p.scope.HasService(namespace, name)
	}
	if p.scope.Namespace == "" {
		return true
	}
	return slices.ContainsFunc(p.result.Results, func(r loadbalancer.Result) bool {
		return r.Desired != nil && r.On.Key() == pool.ID.LoadBalancer.Key() &&
			slices.ContainsFunc(r.Pools, func(w service.Pool) bool { return strings.EqualFold(w.Name, pool.ID.Name) })
	})
}

// usesInterfaces reports whether nodes are members of the load balancers' pools by their network interfaces.
func (s *Simulator) usesInterfaces(d Changes) bool {
	var kinds []service.MemberKind
	for _, c := range d.LoadBalancers {
		kinds = append(kinds, s.settings.NodeMembers(c.Before.Pools))
	}
	for _, c := range d.LoadBalancers {
		kinds = append(kinds, s.settings.ImpliedMembers(c.Before))
	}
	return s.settings.UsesInterfaces(kinds...)
}
