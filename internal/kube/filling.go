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

// isNew reports whether a pool has just been made by Weir, and holds nothing of it yet.
func (c *Cluster) isNew(p *v1alpha1.BackendPool, e *entry, st standing) bool {
	return c.snap.made(p) && (!st.taken || e.lacksPool())
}

// found has a pool looked at again that was missing when it was seen last: its load balancer is
// known to be there now.
func (c *Cluster) found(p *v1alpha1.BackendPool) {
	if e := c.statuses.known(refOf(p)); e != nil && e.lacksPool() {
		e.again(time.Now())
		c.wake.add(e.ref)
	}
}
