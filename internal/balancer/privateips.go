// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privateip"
)

func newPrivateIPs(cfg Config) *privateip.Keeper {
	return privateip.New(privateip.Config{
		Store: cfg.PrivateIPs, LoadBalancers: cfg.names(), Log: cfg.Log,
		Limit: func(namespace string) int {
			return cfg.Cluster.Bounds(namespace).Of(bound.MaxFrontends, bound.Capacity{Max: lb.MaxFrontends}, true).Max
		},
	})
}

// loadPrivateIPs reads the reservations, if needed, before the load balancer is locked.
func (l *loadBalancer) loadPrivateIPs(ctx context.Context, jobs []*job) {
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.Desired != nil && j.Desired.Internal }) {
		l.privateIPs.Load(ctx)
	}
}

func (l *loadBalancer) withoutReserved(jobs []*job, snap snapshot) []*job {
	rejected := l.privateIPs.Check(l.usersOf(snap.observed), l.privateWants(jobs, snap), time.Now())
	return withoutRefused(jobs, rejected)
}

func (l *loadBalancer) reserve(ctx context.Context, jobs, served []*job, snap snapshot) []*job {
	rejected := l.privateIPs.Reserve(ctx, l.id.Name, l.usersOf(snap.observed), l.privateWants(served, snap), time.Now())
	return withoutRefused(jobs, rejected)
}

func withoutRefused(jobs []*job, rejected map[string]error) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		if err := rejected[j.Owner]; err != nil {
			j.refused = err
		}
		return rejected[j.Owner] != nil
	})
}

func (l *loadBalancer) usersOf(b lb.LoadBalancer) privateip.Users {
	return privateip.UsersOf(b, serviceOf(l.cfg.Cluster))
}

func (l *loadBalancer) privateWants(jobs []*job, snap snapshot) []privateip.Want {
	var wants []privateip.Want
	for _, j := range jobs {
		if j.leaves() || !j.Desired.Internal {
			continue
		}
		w := privateip.Want{Owner: j.Owner, Service: j.Service, Created: j.Created}
		for _, f := range j.wanted.Frontends {
			if key := privateip.Key(plan.Fixed(f.Frontend, j.Owner, j.wanted.Rules, snap.observed, l.cfg.Owed)); key != "" {
				w.Keys = append(w.Keys, key)
			}
		}
		wants = append(wants, w)
	}
	return wants
}
