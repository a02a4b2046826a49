// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// filled has the Services asked for again that wait for a pool.
func (c *Cluster) filled(p *v1alpha1.BackendPool, r poolupdate.Report) {
	if c.balancers == nil || !r.Settled {
		return
	}
	for _, s := range c.servedBy(p.Spec.LoadBalancer.Name) {
		name := client.ObjectKeyFromObject(s)
		if c.serviceLBs.States.PoolFilled(name.String(), r.Pool) {
			c.balanced.addName(name)
		}
	}
}

// found has a pool looked at again that was missing when it was seen last: its load balancer is
// known to be there now.
func (c *Cluster) found(p *v1alpha1.BackendPool) { c.pools.LookAgain(p, time.Now()) }
