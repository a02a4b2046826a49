// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/membership"
)

// EventHeldBack is the reason of the event on a Service, or a BackendPool that has none, of
// which members stay up though their eviction is announced.
const EventHeldBack = "SpotEvictionsHeldBack"

// tellSpared puts an event where members begin to stay up.
func (c *Cluster) tellSpared(p *v1alpha1.BackendPool, is backendpool.Entitlement, set membership.Set) {
	if about := c.objectOf(aboutPool(p, is)); about != nil {
		c.events.add(about, corev1.EventTypeWarning, EventHeldBack, sentence("Pool "+p.Spec.PoolName+": "+backendpool.SparedMessage(set), maxMessage))
	}
}
