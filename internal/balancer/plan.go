// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// plan plans for the jobs and returns those it covers: conflicting and published parts stay as they are.
func (l *loadBalancer) plan(ctx context.Context, jobs []*job, snap snapshot) (p plan.Plan, due []*job, err error) {
	if err := l.hold(ctx, jobs, snap.observed, snap.converting); err != nil {
		return plan.Plan{}, nil, err
	}
	jobs = l.withoutReserved(jobs, snap)
	p = plan.Make(l.input(jobs, snap))
	if due = l.uncontested(jobs, p, snap.observed.Etag == ""); len(due) < len(jobs) {
		p = plan.Make(l.input(due, snap))
	}
	for remaining := l.keepPublished(ctx, due, p, snap); len(remaining) < len(due); remaining = l.keepPublished(ctx, due, p, snap) {
		due, p = remaining, plan.Make(l.input(remaining, snap))
	}
	return p, due, nil
}

func split(jobs []*job, p plan.Plan) (served []*job) {
	for _, j := range jobs {
		if j.refused = p.Refused[j.Owner]; j.refused == nil {
			served = append(served, j)
		}
	}
	return served
}

func (l *loadBalancer) input(jobs []*job, snap snapshot) plan.Input {
	in := l.boundsInput(l.id.Name)
	in.Observed = snap.observed
	in.SharedPools, in.SharedProbes, in.Retired = l.cfg.NodePools(), []string{service.SharedProbeName}, l.retired(jobs, snap.observed, snap.converting)
	in.Foreign, in.Emptying, in.AddressAt = snap.foreign, snap.emptying, snap.ips.AddressAt
	in.FamilyOf = func(f lb.Frontend) lb.Family { return snap.ips.Family(f.PublicIP) }
	in.Made = snap.ips.IsMade
	in.Left = slices.DeleteFunc(snap.left.On(l.id), func(name string) bool {
		return l.cfg.Cluster.Binds(lb.PoolID{LoadBalancer: l.id, Name: name})
	})
	due := map[string]bool{}
	for _, j := range jobs {
		in.Shares = append(in.Shares, l.wanted(j, snap))
		due[j.Owner] = true
	}
	for _, owner := range snap.owners {
		if !due[owner] {
			in.Others = append(in.Others, owner)
		}
	}
	return in
}

func (l *loadBalancer) wanted(j *job, snap snapshot) plan.Share {
	s := plan.Share{Owner: j.Owner, Namespace: j.namespace(), OwnPools: j.OwnPools, HeldPools: lb.NamesOn(l.id, j.HeldPools), MadePools: lb.NamesOn(l.id, j.MadePools), LeftPools: snap.left.Of(j.Service, l.id, j.OwnPools)}
	if j.leaves() {
		s.Needs = func(f lb.Frontend) bool { return snap.ips.Needs(j.Desired, f) }
		return s
	}
	s.Probes, s.Rules = j.wanted.Probes, j.rules
	for i, f := range j.wanted.Frontends {
		front := plan.Fixed(f.Frontend, j.Owner, j.wanted.Rules, snap.observed, l.cfg.Owed)
		if ip, public := snap.ips.Of(j.ips, i); public {
			front.PublicIP = ip.ID.String()
		}
		s.Frontends = append(s.Frontends, front)
	}
	for _, p := range j.Pools {
		s.Pools = append(s.Pools, lb.Pool{
			ID:        lb.PoolID{LoadBalancer: l.id, Name: p.Name},
			Addresses: l.fresh(j, p),
		})
	}
	return s
}

// serviceOf returns a function that names the Service of a rule. It lists the cluster's Services on first use.
func serviceOf(cluster Cluster) func(rule string) string {
	services := sync.OnceValue(func() map[string]string {
		of := map[string]string{}
		for _, r := range cluster.Reached() {
			of[strings.ToLower(r.Owner)] = r.Service
		}
		return of
	})
	return func(rule string) string {
		owner, _, _ := strings.Cut(rule, "-")
		return services()[strings.ToLower(owner)]
	}
}
