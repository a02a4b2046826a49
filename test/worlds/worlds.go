// SPDX-License-Identifier: Apache-2.0

// Package worlds defines the Azure behaviors that tests run in, by what a PUT of a load balancer
// does to the addresses of its pools.
package worlds

import "weir.dev/weir/internal/lb/behavior"

// BatchedWrites returns the behavior in which a PUT of a load balancer updates its pools, contrary to the
// assumed one.
func BatchedWrites() behavior.Behavior {
	return behavior.Behavior{
		UpdateAddresses: behavior.Accepted, UpdateAdminStates: behavior.Accepted, UpdateNewPools: behavior.Populated,
	}
}

// AllBehaviors returns all behaviors by name.
func AllBehaviors() map[string]behavior.Behavior {
	filling, taking := behavior.Behavior{UpdateNewPools: behavior.Populated}, BatchedWrites()
	taking.UpdateNewPools = behavior.Empty
	return map[string]behavior.Behavior{
		"as assumed":                              {},
		"whole writes bring all":                  BatchedWrites(),
		"whole writes fill new pools alone":       filling,
		"whole writes bring all but to new pools": taking,
	}
}
