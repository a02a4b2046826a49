// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

func newPrivateIPs(cfg Config) *PrivateIPManager {
	return NewPrivateIPManager(PrivateIPConfig{
		Store: cfg.PrivateIPs, LoadBalancers: cfg.loadBalancerNames(), Log: cfg.Log,
		Limit: func(namespace string) int {
			return cfg.Cluster.NamespaceBounds(namespace).NamespaceBound(service.MaxFrontends, service.NamespaceCapacity{Max: lb.MaxFrontends}, true).Max
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
	rejected := l.privateIPs.Check(l.usersOf(snap.observed), l.privateIPRequests(jobs, snap), time.Now())
	return withoutRejected(jobs, rejected)
}

func (l *loadBalancer) reserveAddresses(ctx context.Context, jobs, served []*job, snap snapshot) []*job {
	rejected := l.privateIPs.Reserve(ctx, l.id.Name, l.usersOf(snap.observed), l.privateIPRequests(served, snap), time.Now())
	return withoutRejected(jobs, rejected)
}

func withoutRejected(jobs []*job, rejected map[string]error) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		if err := rejected[j.Owner]; err != nil {
			j.rejection = err
		}
		return rejected[j.Owner] != nil
	})
}

func (l *loadBalancer) usersOf(b lb.LoadBalancer) PrivateIPUsers {
	return FindPrivateIPUsers(b, serviceOf(l.cfg.Cluster))
}

func (l *loadBalancer) privateIPRequests(jobs []*job, snap snapshot) []PrivateIPRequest {
	var wants []PrivateIPRequest
	for _, j := range jobs {
		if j.isLeaving() || !j.Desired.Internal {
			continue
		}
		w := PrivateIPRequest{Owner: j.Owner, Service: j.Service, Created: j.Created}
		for _, f := range j.localSpec.Frontends {
			if key := AddressKey(plan.PinAddress(f.Frontend, j.Owner, j.Service, j.localSpec.Rules, snap.observed, l.cfg.ReservedAddress)); key != "" {
				w.Keys = append(w.Keys, key)
			}
		}
		wants = append(wants, w)
	}
	return wants
}
