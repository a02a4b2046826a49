// SPDX-License-Identifier: Apache-2.0

// Package worlds names the Azures that tests run in, by what a PUT of a load balancer does with
// the addresses of its pools. What a test needs of the rest it says itself.
package worlds

import "weir.dev/weir/internal/behaviour"

// Taking returns the Azure whose PUT of a load balancer brings its pools all that it carries:
// the opposite of what is assumed.
func Taking() behaviour.Behaviour {
	return behaviour.Behaviour{
		WholeWriteAddresses: behaviour.Taken, WholeWriteAdminStates: behaviour.Taken, WholeWriteNewPools: behaviour.Filled,
	}
}

// All returns each of the Azures by its name.
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
