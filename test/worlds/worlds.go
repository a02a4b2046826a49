// SPDX-License-Identifier: Apache-2.0

// Package worlds defines the Azure behaviors that tests run in, by what a PUT of a load balancer
// does to the addresses of its pools.
package worlds

import "weir.dev/weir/internal/behaviour"

// Taking returns the behavior in which a PUT of a load balancer updates its pools, contrary to the
// assumed one.
func Taking() behaviour.Behaviour {
	return behaviour.Behaviour{
		WholeWriteAddresses: behaviour.Taken, WholeWriteAdminStates: behaviour.Taken, WholeWriteNewPools: behaviour.Filled,
	}
}

// All returns all behaviors by name.
func All() map[string]behaviour.Behaviour {
	filling, taking := behaviour.Behaviour{WholeWriteNewPools: behaviour.Filled}, Taking()
	taking.WholeWriteNewPools = behaviour.Empty
	return map[string]behaviour.Behaviour{
		"as assumed":                              {},
		"whole writes bring all":                  Taking(),
		"whole writes fill new pools alone":       filling,
		"whole writes bring all but to new pools": taking,
	}
}
