// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// Ours is the set of pools that a machine may be taken out of. What else it is in is somebody
// else's: other load balancers, pools of outbound rules, application gateways.
type Ours map[lb.PoolKey]bool

// NewOurs returns the set of the pools that Weir has recorded, and of those that it holds: the
// cluster's own pools on load balancers that are Weir's to write.
func NewOurs(recorded, held []lb.PoolID) Ours {
	ours := make(Ours, len(recorded)+len(held))
	for _, pools := range [][]lb.PoolID{recorded, held} {
		for _, id := range pools {
			ours[id.Key()] = true
		}
	}
	return ours
}

// Holds reports whether an ARM id is that of a pool in the set, however it is spelled.
func (o Ours) Holds(id string) bool { return o[keyOf(id)] }

// keyOf folds an ARM id of a pool as lb.PoolID.Key does.
func keyOf(id string) lb.PoolKey { return lb.PoolKey(strings.ToLower(strings.TrimSpace(id))) }
