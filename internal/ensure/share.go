// SPDX-License-Identifier: Apache-2.0

package ensure

import (
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// share is what a job's step wants of the load balancer.
func (w *worker) share(j *job, inv *inventory) plan.Share {
	s := plan.Share{Owner: j.Owner, OwnPools: j.OwnPools, HeldPools: j.HeldPools}
	if j.steps[0].leaves {
		return s
	}
	s.Probes, s.Rules = j.Wish.Probes, j.Wish.Rules
	for i, f := range j.Wish.Faces {
		front := f.Frontend
		if key := inv.of[j][i]; key != "" {
			front.PublicIP = inv.known[key].ID.String()
		}
		s.Frontends = append(s.Frontends, front)
	}
	for _, p := range j.Wish.Pools {
		s.Pools = append(s.Pools, lb.Pool{
			ID:        lb.PoolID{LoadBalancer: w.id, Name: p.Name},
			Addresses: upOnly(w.cfg.Cluster.Fresh(j.Service, w.id, p)),
		})
	}
	return s
}

// upOnly returns the addresses that a pool is made with: those that are not to be Down. A pool
// that is being made has no record yet, and a Down that is on no record is nobody's to take
// back. To new flows it is the same; the pool's lane adds the others, on record.
func upOnly(fresh []lb.Address) []lb.Address {
	return slices.DeleteFunc(slices.Clone(fresh), func(a lb.Address) bool { return a.AdminState == lb.Down })
}
