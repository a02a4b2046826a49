// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// ManagedPools are the managed pools, from which a machine may be removed. All others are foreign, e.g.
// pools of outbound rules.
type ManagedPools map[lb.PoolKey]bool

// NewManagedPools takes recorded pools and the cluster's pools on managed load balancers.
func NewManagedPools(recorded, owned []lb.PoolID) ManagedPools {
	managed := make(ManagedPools, len(recorded)+len(owned))
	for _, pools := range [][]lb.PoolID{recorded, owned} {
		for _, id := range pools {
			managed[id.Key()] = true
		}
	}
	return managed
}

// HasPool ignores case.
func (m ManagedPools) HasPool(id string) bool { return m[poolKey(id)] }

func poolKey(id string) lb.PoolKey { return lb.PoolKey(strings.ToLower(strings.TrimSpace(id))) }
