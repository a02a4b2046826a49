// SPDX-License-Identifier: Apache-2.0

// Package worlds defines the Azure behaviors that tests run in, by what a PUT of a load balancer
// does to the addresses of its pools.
package worlds

import "weir.dev/weir/internal/behaviour"

// BatchedWrites returns the behavior in which a PUT of a load balancer updates its pools, contrary to the
// assumed one.
func BatchedWrites() behaviour.Behavior {
	return behaviour.Behavior{
		UpdateAddresses: behaviour.Accepted, UpdateAdminStates: behaviour.Accepted, UpdateNewPools: behaviour.Populated,
	}
}

// AllBehaviors returns all behaviors by name.
func AllBehaviors() map[string]behaviour.Behavior {
	filling, taking := behaviour.Behavior{UpdateNewPools: behaviour.Populated}, BatchedWrites()
	taking.UpdateNewPools = behaviour.Empty
	return map[string]behaviour.Behavior{
		"as assumed":                              {},
		"whole writes bring all":                  BatchedWrites(),
		"whole writes fill new pools alone":       filling,
		"whole writes bring all but to new pools": taking,
	}
}
