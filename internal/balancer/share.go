// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
)

// share is what a job's step wants of the load balancer.
func (w *worker) share(j *job, ips *publicip.Round) plan.Share {
	s := plan.Share{Owner: j.Owner, OwnPools: j.OwnPools, HeldPools: namesOn(w.id, j.HeldPools), MadePools: namesOn(w.id, j.MadePools)}
	if j.steps[0].leaves {
		return s
	}
	s.Probes, s.Rules = j.Desired.Probes, j.rules
	for i, f := range j.Desired.Frontends {
		front := f.Frontend
		if ip, public := ips.Of(j.ips, i); public {
			front.PublicIP = ip.ID.String()
		}
		s.Frontends = append(s.Frontends, front)
	}
	for _, p := range j.Desired.Pools {
		s.Pools = append(s.Pools, lb.Pool{
			ID:        lb.PoolID{LoadBalancer: w.id, Name: p.Name},
			Addresses: w.fresh(j, p),
		})
	}
	return s
}

// namesOn are the names of those pools that are on a load balancer.
func namesOn(id lb.LoadBalancerID, pools []lb.PoolID) []string {
	var names []string
	for _, p := range pools {
		if p.LoadBalancer.Key() == id.Key() {
			names = append(names, p.Name)
		}
	}
	return names
}
