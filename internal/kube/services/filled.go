// SPDX-License-Identifier: Apache-2.0

package services

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// Filled has the Services asked for again that wait for a pool.
func (r *Reconciler) Filled(p *v1alpha1.BackendPool, report poolupdate.Report) {
	if r.balancers == nil || !report.Settled {
		return
	}
	for _, s := range r.own.ServedBy(p.Spec.LoadBalancer.Name) {
		name := client.ObjectKeyFromObject(s)
		if r.decide.States.PoolFilled(name.String(), report.Pool) {
			r.queue.Add(name)
		}
	}
}

// found has a pool looked at again that was missing when it was seen last: its load balancer is
// known to be there now.
func (r poolMaker) found(p *v1alpha1.BackendPool) { r.pools.LookAgain(p, time.Now()) }
