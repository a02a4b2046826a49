// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"weir.dev/weir/internal/servicelb"
)

// Contested counts by kind what somebody else keeps undoing. Its cost grows with the number of
// BackendPools.
func (c *Cluster) Contested() map[string]int {
	return map[string]int{"Service": c.ServiceStates()[string(servicelb.Contested)], "BackendPool": c.statuses.Contested()}
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
