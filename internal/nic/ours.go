// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// Ours are the managed pools, from which a machine may be removed. All others are foreign, e.g.
// pools of outbound rules.
type Ours map[lb.PoolKey]bool

// NewOurs takes recorded pools and the cluster's pools on managed load balancers.
func NewOurs(recorded, held []lb.PoolID) Ours {
	managed := make(Ours, len(recorded)+len(held))
	for _, pools := range [][]lb.PoolID{recorded, held} {
		for _, id := range pools {
			managed[id.Key()] = true
		}
	}
	return managed
}

// Holds ignores case.
func (o Ours) Holds(id string) bool { return o[keyOf(id)] }

func keyOf(id string) lb.PoolKey { return lb.PoolKey(strings.ToLower(strings.TrimSpace(id))) }
