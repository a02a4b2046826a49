// SPDX-License-Identifier: Apache-2.0

package wholewrite

// Leaves are the permissions of changes in a write of several pools.
type Leaves struct{ Addresses, States Leave }

// None reports whether nothing is permitted.
func (may Leaves) None() bool { return may.Addresses == No && may.States == No }

// Allow reports whether a pool's write may be included: whether it changes addresses or admin
// states, and whether it takes a node Down. A trial never takes a node Down, and a write without
// changes, which makes the pool effective again, is not left to a trial.
func (may Leaves) Allow(addresses, states, takesDown bool) bool {
	switch {
	case !addresses && !states:
		return may.Addresses == Yes
	case addresses && may.Addresses == No, states && may.States == No:
		return false
	}
	return may.States != Try || !takesDown
}

// Tries returns which of the changes are on trial.
func (may Leaves) Tries(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if c == Addresses && may.Addresses == Try || c == AdminStates && may.States == Try {
			all = append(all, c)
		}
	}
	return all
}
