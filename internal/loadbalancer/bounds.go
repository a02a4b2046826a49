// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// rejectOverLimit fails the jobs that would exceed a bound, before public IPs are made for them, and returns
// the others. It uses the cached load balancer and reads it again before rejecting, because other clients may
// have removed rules.
func (l *loadBalancer) rejectOverLimit(ctx context.Context, jobs []*job) []*job {
	exceeding := l.jobsOverLimit(jobs)
	if len(exceeding) == 0 {
		return jobs
	}
	if l.refreshState(ctx, l.id) != nil {
		return jobs // the round gets the same error
	}
	exceeding = l.jobsOverLimit(jobs)
	return l.failUnready(ctx, jobs, func(j *job) error { return exceeding[j.Owner] })
}

func (b *LoadBalancers) refreshState(ctx context.Context, id lb.LoadBalancerID) error {
	observed, err := b.cfg.Azure.GetLoadBalancer(ctx, id)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale:
		b.cache.recordState(lb.LoadBalancer{ID: id})
	case err != nil:
		return err
	default:
		b.cache.recordState(observed)
	}
	return nil
}

func (b *LoadBalancers) ensureState(ctx context.Context, id lb.LoadBalancerID) error {
	b.cache.mu.Lock()
	_, known := b.cache.observedLocked(id.Name)
	b.cache.mu.Unlock()
	if known {
		return nil
	}
	return b.refreshState(ctx, id)
}

// jobsOverLimit returns an error for each job that would exceed a bound, by owner; nil while the load balancer is
// unknown.
func (l *loadBalancer) jobsOverLimit(jobs []*job) map[string]error {
	in := l.limitsInput(l.id.Name)
	l.cache.mu.Lock()
	observed, known := l.cache.observedLocked(l.id.Name)
	l.cache.mu.Unlock()
	if !known {
		return nil
	}
	in.Observed = observed
	if err := l.checkKind(observed); err != nil {
		return rejectJobs(jobs, err)
	}
	for _, j := range jobs {
		s := plan.ServiceParts{Owner: j.Owner, Namespace: j.namespace()}
		if !j.isLeaving() {
			s.Rules = j.Desired.SelectPools(l.cfg.Settings.Settings, l.usesInterfaces(l.id.Name), observed.Rules).Rules
			s.Frontends, s.Unresolved = newFrontends(j.Desired)
			for i, f := range s.Frontends {
				s.Frontends[i] = plan.PinAddress(f, j.Owner, j.Service, s.Rules, observed, nil)
			}
		}
		in.Services = append(in.Services, s)
	}
	return plan.OverLimit(in)
}

// checkKind returns why Weir does not write a load balancer, or nil; one that does not exist can be created.
func (l *loadBalancer) checkKind(observed lb.LoadBalancer) error {
	switch {
	case observed.Etag == "" || observed.SKU == lb.Standard && !observed.Global:
		return nil
	case observed.Global:
		return fmt.Errorf("%s is of tier Global, and its pools hold frontends of other load balancers: %s", l.name(), useAnother)
	case observed.SKU == lb.Basic:
		return fmt.Errorf("%s is of SKU %s: %w", l.name(), observed.SKU, publicip.ErrBasic)
	}
	return fmt.Errorf("%s is of SKU %s, and Weir writes Standard ones only: %s", l.name(), observed.SKU, useAnother)
}

func rejectJobs(jobs []*job, reason error) map[string]error {
	errs := map[string]error{}
	for _, j := range jobs {
		errs[j.Owner] = reason
	}
	return errs
}

const useAnother = "name another load balancer in azure.json (loadBalancerName or multipleStandardLoadBalancerConfigurations), or delete this one"

// checkLimitsLocked returns why a Service that moves to a load balancer would exceed a bound there, or nil. The
// caller holds the lock of the placements.
func (b *LoadBalancers) checkLimitsLocked(p PlacementRequest, on string) error {
	in := b.limitsInput(on)
	observed, known := b.cache.observedLocked(on)
	if !known {
		return nil
	}
	in.Observed = observed
	s := plan.ServiceParts{Owner: p.Owner, Namespace: namespaceOf(p.Service), Rules: p.Desired.SelectPools(b.cfg.Settings.Settings, b.usesInterfaces(on), observed.Rules).Rules}
	s.Frontends, s.Unresolved = newFrontends(p.Desired)
	in.Services = []plan.ServiceParts{s}
	return plan.OverLimit(in)[p.Owner]
}

func (b *LoadBalancers) limitsInput(on string) plan.Input {
	exposed := exposedServiceOf(b.cfg.Cluster)
	in := plan.Input{
		ServiceOf:              func(rule string) string { return exposed(rule).Service },
		GatewayLoadBalancersOf: func(rule string) []string { return exposed(rule).GatewayLoadBalancers },
		MaxRules:               b.cfg.MaxRules, RulesBy: b.cfg.RulesBy, MaxFrontends: lb.MaxFrontends, NamespaceBounds: b.cfg.Cluster.NamespaceBounds,
	}
	if on != "" && b.usesInterfaces(on) {
		in.PeerRules = b.cache.machines.PeerCounts(on)
	}
	return in
}

// newFrontends returns a Service's frontends as far as they are known before its public IPs. Those with a
// public IP selected by address may exist already; they are unresolved.
func newFrontends(w *service.Spec) (frontends, unresolved []lb.Frontend) {
	for _, f := range w.Frontends {
		front := f.Frontend
		switch {
		case f.PublicIP == nil:
		case f.PublicIP.Address.IsValid():
			unresolved = append(unresolved, front)
			continue
		default:
			front.PublicIP = f.PublicIP.ID.String()
		}
		frontends = append(frontends, front)
	}
	return frontends, unresolved
}
