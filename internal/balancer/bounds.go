// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// rejectExceeding fails the jobs that would exceed a bound, before public IPs are made for them, and returns
// the others. It uses the cached load balancer and reads it again before rejecting, because other clients may
// have removed rules.
func (l *loadBalancer) rejectExceeding(ctx context.Context, jobs []*job) []*job {
	exceeding := l.exceeding(jobs)
	if len(exceeding) == 0 {
		return jobs
	}
	if l.readShown(ctx, l.id) != nil {
		return jobs // the round gets the same error
	}
	exceeding = l.exceeding(jobs)
	return l.sift(ctx, jobs, func(j *job) error { return exceeding[j.Owner] })
}

func (b *Balancers) readShown(ctx context.Context, id lb.LoadBalancerID) error {
	observed, err := b.cfg.Azure.GetLoadBalancer(ctx, id)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale:
		b.placements.saw(lb.LoadBalancer{ID: id})
	case err != nil:
		return err
	default:
		b.placements.saw(observed)
	}
	return nil
}

func (b *Balancers) look(ctx context.Context, id lb.LoadBalancerID) error {
	b.placements.mu.Lock()
	_, known := b.placements.shownLocked(id.Name)
	b.placements.mu.Unlock()
	if known {
		return nil
	}
	return b.readShown(ctx, id)
}

// exceeding returns an error for each job that would exceed a bound, by owner; nil while the load balancer is
// unknown.
func (l *loadBalancer) exceeding(jobs []*job) map[string]error {
	in := l.boundsInput(l.id.Name)
	l.placements.mu.Lock()
	observed, known := l.placements.shownLocked(l.id.Name)
	l.placements.mu.Unlock()
	if !known {
		return nil
	}
	in.Observed = observed
	for _, j := range jobs {
		s := plan.Share{Owner: j.Owner, Namespace: j.namespace()}
		if !j.leaves() {
			s.Rules = j.Desired.Rules
			s.Frontends, s.Unresolved = freshFrontends(j.Desired)
		}
		in.Shares = append(in.Shares, s)
	}
	return plan.Exceeding(in)
}

// exceedsLocked returns why a Service that moves to a load balancer would exceed a bound there, or nil. The
// caller holds the lock of the placements.
func (b *Balancers) exceedsLocked(p Placing, on string) error {
	in := b.boundsInput(on)
	observed, known := b.placements.shownLocked(on)
	if !known {
		return nil
	}
	in.Observed = observed
	s := plan.Share{Owner: p.Owner, Namespace: namespaceOf(p.Service), Rules: p.Desired.Rules}
	s.Frontends, s.Unresolved = freshFrontends(p.Desired)
	in.Shares = []plan.Share{s}
	return plan.Exceeding(in)[p.Owner]
}

func (b *Balancers) boundsInput(on string) plan.Input {
	in := plan.Input{
		MostRules: b.cfg.MostRules, RulesBy: b.cfg.RulesBy, MaxFrontends: lb.MaxFrontends, Bounds: b.cfg.Cluster.Bounds, ServiceOf: serviceOf(b.cfg.Cluster),
	}
	if b.cfg.Interfaces {
		in.Beside = b.placements.machines.Beside(on)
	}
	return in
}

// freshFrontends returns a Service's frontends as far as they are known before its public IPs. Those with a
// public IP selected by address may exist already; they are unresolved.
func freshFrontends(w *service.Spec) (all, unresolved []lb.Frontend) {
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
		all = append(all, front)
	}
	return all, unresolved
}
