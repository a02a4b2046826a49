// SPDX-License-Identifier: Apache-2.0

package wholewrite

// Leaves are the permissions for one write of several pools.
type Leaves struct{ Addresses, States Leave }

// None reports whether nothing is permitted.
func (may Leaves) None() bool { return may.Addresses == No && may.States == No }

// Allow reports whether a pool's change is permitted. A trial never takes a node Down, nor does it
// include a rewrite without changes.
func (may Leaves) Allow(addresses, states, takesDown bool) bool {
	switch {
	case !addresses && !states:
		return may.Addresses == Yes
	case addresses && may.Addresses == No, states && may.States == No:
		return false
	}
	return may.States != Try || !takesDown
}

// Tries returns the changes on trial.
func (may Leaves) Tries(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if c == Addresses && may.Addresses == Try || c == AdminStates && may.States == Try {
			all = append(all, c)
		}
	}
	return all
}
