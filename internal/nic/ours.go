// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// Ours is the set of managed pools, from which a machine may be removed. All others are foreign:
// other load balancers, pools of outbound rules, application gateways.
type Ours map[lb.PoolKey]bool

// NewOurs returns the set of recorded pools and of the cluster's pools on load balancers that Weir
// manages.
func NewOurs(recorded, held []lb.PoolID) Ours {
	managed := make(Ours, len(recorded)+len(held))
	for _, pools := range [][]lb.PoolID{recorded, held} {
		for _, id := range pools {
			managed[id.Key()] = true
		}
	}
	return managed
}

// Holds reports whether the pool with this ARM ID is in the set, ignoring case.
func (o Ours) Holds(id string) bool { return o[keyOf(id)] }

// keyOf returns the key of a pool's ARM ID, like lb.PoolID.Key.
func keyOf(id string) lb.PoolKey { return lb.PoolKey(strings.ToLower(strings.TrimSpace(id))) }
