// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
)

// EventHeldBack is the reason of the event on a Service, or a BackendPool that has none, of
// which members stay up though their eviction is announced.
const EventHeldBack = "SpotEvictionsHeldBack"

// sparedMessage says which members stay up, and why.
func sparedMessage(set membership.Set) string {
	announced := len(set.Spared)
	for _, d := range set.Draining {
		if d.Announced {
			announced++
		}
	}
	names := make([]string, len(set.Spared))
	for i, d := range set.Spared {
		names[i] = d.Node
	}
	return fmt.Sprintf("kept in the pool: %d of %s are announced to be evicted at once, so that these stay up: %s",
		announced, count(len(set.Addresses), "member"), namesOf(names))
}

// tellSpared puts an event where members begin to stay up; the status follows each of them.
func (c *Cluster) tellSpared(p *v1alpha1.BackendPool, e *entry, st standing, set membership.Set) {
	if !e.beginsToSpare(len(set.Spared) > 0) {
		return
	}
	if about := c.objectOf(aboutPool(p, st)); about != nil {
		c.events.add(about, corev1.EventTypeWarning, EventHeldBack, sentence("Pool "+p.Spec.PoolName+": "+sparedMessage(set), maxMessage))
	}
}

// beginsToSpare keeps whether members are spared, and reports whether that is news.
func (e *entry) beginsToSpare(spares bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	begins := spares && !e.spares
	e.spares = spares
	return begins
}
