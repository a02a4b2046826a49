// SPDX-License-Identifier: Apache-2.0

// Package worlds defines the Azure behaviors that tests run in, by what a PUT of a load balancer
// does to the addresses of its pools.
package worlds

import "weir.dev/weir/internal/behaviour"

// Taking returns the behavior in which a PUT of a load balancer updates its pools, contrary to the
// assumed one.
func Taking() behaviour.Behavior {
	return behaviour.Behavior{
		UpdateAddresses: behaviour.Accepted, UpdateAdminStates: behaviour.Accepted, UpdateNewPools: behaviour.Populated,
	}
}

// All returns all behaviors by name.
func All() map[string]behaviour.Behavior {
	filling, taking := behaviour.Behavior{UpdateNewPools: behaviour.Populated}, Taking()
	taking.UpdateNewPools = behaviour.Empty
	return map[string]behaviour.Behavior{
		"as assumed":                              {},
		"whole writes bring all":                  Taking(),
		"whole writes fill new pools alone":       filling,
		"whole writes bring all but to new pools": taking,
	}
}
