// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// buildPlan plans for the jobs and returns those it covers: conflicting and published parts stay as they are.
func (l *loadBalancer) buildPlan(ctx context.Context, jobs []*job, snap snapshot) (p plan.Plan, due []*job, err error) {
	if err := l.holdRules(ctx, jobs, snap.observed, snap.conversions); err != nil {
		return plan.Plan{}, nil, err
	}
	jobs = withoutRejected(l.withoutReserved(jobs, snap), snap.zoneErrors)
	p = plan.Make(l.planInput(jobs, snap))
	if due = l.withoutConflicts(jobs, p, snap.observed.Etag == ""); len(due) < len(jobs) {
		p = plan.Make(l.planInput(due, snap))
	}
	for remaining := l.deferPublished(ctx, due, p, snap); len(remaining) < len(due); remaining = l.deferPublished(ctx, due, p, snap) {
		due, p = remaining, plan.Make(l.planInput(remaining, snap))
	}
	return p, due, nil
}

func splitRejected(jobs []*job, p plan.Plan) (served []*job) {
	for _, j := range jobs {
		if j.rejection = p.Rejected[j.Owner]; j.rejection == nil {
			served = append(served, j)
		}
	}
	return served
}

func (l *loadBalancer) planInput(jobs []*job, snap snapshot) plan.Input {
	in := l.limitsInput(l.id.Name)
	in.Observed, in.Now = snap.observed, time.Now()
	in.SharedPools, in.SharedProbes, in.ReplacedPools = l.cfg.NodePools(), []string{service.SharedProbeName}, l.replacedPools(jobs, snap.observed, snap.conversions)
	in.ForeignMembers, in.RemainingInterfaces, in.AddressAt = snap.foreign, snap.remainingInterfaces, snap.publicIPs.AddressAt
	in.FamilyOf = func(f lb.Frontend) lb.Family { return snap.publicIPs.FamilyOf(f.PublicIP) }
	in.IsManaged = snap.publicIPs.IsManaged
	in.LeftPools = slices.DeleteFunc(snap.leftPools.NamesOn(l.id), func(name string) bool {
		return l.cfg.Cluster.HasBackendPool(lb.PoolID{LoadBalancer: l.id, Name: name})
	})
	due := map[string]bool{}
	for _, j := range jobs {
		in.Services = append(in.Services, l.partsOf(j, snap))
		due[j.Owner] = true
	}
	for _, owner := range snap.owners {
		if !due[owner] {
			in.Others = append(in.Others, owner)
		}
	}
	return in
}

func (l *loadBalancer) partsOf(j *job, snap snapshot) plan.ServiceParts {
	s := plan.ServiceParts{Owner: j.Owner, Namespace: j.namespace(), RetainFor: j.retainFor(), DedicatedPools: j.DedicatedPools, RecordedPools: lb.PoolNames(l.id, j.RecordedPools), ManagedPools: lb.PoolNames(l.id, j.ManagedPools), LeftPools: snap.leftPools.ServicePools(j.Service, l.id, j.DedicatedPools)}
	if j.isLeaving() {
		s.NeedsAddress = func(f lb.Frontend) bool { return snap.publicIPs.NeedsAddress(j.Desired, f) }
		return s
	}
	s.Probes, s.Rules = j.localSpec.Probes, j.rules
	for i, f := range j.localSpec.Frontends {
		front := plan.PinAddress(f.Frontend, j.Owner, j.Service, j.localSpec.Rules, snap.observed, l.cfg.ReservedAddress)
		if ip, public := snap.publicIPs.PublicIPOf(j.ipRequest, i); public {
			front.PublicIP = ip.ID.String()
		}
		front.Zones = snap.zones[j.Owner]
		s.Frontends = append(s.Frontends, front)
	}
	for _, p := range j.Pools {
		s.Pools = append(s.Pools, lb.Pool{ID: lb.PoolID{LoadBalancer: l.id, Name: p.Name}, DrainSeconds: p.DrainSeconds})
	}
	return s
}

// serviceOf returns a function that names the Service of a rule. It lists the cluster's Services on first use.
func serviceOf(cluster Cluster) func(rule string) string {
	exposed := exposedServiceOf(cluster)
	return func(rule string) string { return exposed(rule).Service }
}

func exposedServiceOf(cluster Cluster) func(rule string) ExposedService {
	services := sync.OnceValue(func() map[string]ExposedService {
		of := map[string]ExposedService{}
		for _, r := range cluster.ExposedServices() {
			of[strings.ToLower(r.Owner)] = r
		}
		return of
	})
	return func(rule string) ExposedService {
		owner, _, _ := strings.Cut(rule, "-")
		return services()[strings.ToLower(owner)]
	}
}
