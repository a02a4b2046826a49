// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"

	"weir.dev/weir/internal/servicelb"
)

// Contested counts by kind what somebody else keeps undoing. Its cost grows with the number of
// BackendPools.
func (c *Cluster) Contested() map[string]int {
	count := map[string]int{"Service": c.ServiceStates()[string(servicelb.Contested)], "BackendPool": 0}
	c.statuses.mu.Lock()
	entries := slices.Collect(maps.Values(c.statuses.byRef))
	c.statuses.mu.Unlock()
	for _, e := range entries {
		if e.contested() {
			count["BackendPool"]++
		}
	}
	return count
}

// ServiceStates counts the Services that have a load balancer of Weir's, or are to have one,
// by state.
func (c *Cluster) ServiceStates() map[string]int {
	count := map[string]int{}
	for is, n := range c.serviceLBs.States.Count() {
		count[string(is)] = n
	}
	return count
}
