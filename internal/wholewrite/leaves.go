// SPDX-License-Identifier: Apache-2.0

package wholewrite

// Leaves say which changes pools may be written together for.
type Leaves struct{ Addresses, States Leave }

// None reports whether there is no leave at all.
func (may Leaves) None() bool { return may.Addresses == No && may.States == No }

// Allow reports whether what is to be written of a pool may be a part: whether its addresses and
// admin states are to be changed, and whether a node goes Down with that. A node is never taken
// down by a trial, and what is only written once more, so that it comes into force, is not left to one.
func (may Leaves) Allow(addresses, states, takesDown bool) bool {
	switch {
	case !addresses && !states:
		return may.Addresses == Yes
	case addresses && may.Addresses == No, states && may.States == No:
		return false
	}
	return may.States != Try || !takesDown
}

// Tries returns which of the changes that a write makes are on trial.
func (may Leaves) Tries(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if c == Addresses && may.Addresses == Try || c == AdminStates && may.States == Try {
			all = append(all, c)
		}
	}
	return all
}
