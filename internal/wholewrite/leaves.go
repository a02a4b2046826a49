// SPDX-License-Identifier: Apache-2.0

package wholewrite

// Leaves are the permissions for one write of several pools.
type Leaves struct{ Addresses, States Leave }

// None reports whether nothing is permitted.
func (permissions Leaves) None() bool { return permissions.Addresses == No && permissions.States == No }

// Allow reports whether a pool's change is permitted. A trial never takes a node Down, nor does it
// include a rewrite without changes.
func (permissions Leaves) Allow(addresses, states, takesDown bool) bool {
	switch {
	case !addresses && !states:
		return permissions.Addresses == Yes
	case addresses && permissions.Addresses == No, states && permissions.States == No:
		return false
	}
	return permissions.States != Try || !takesDown
}

// Tries returns the changes on trial.
func (permissions Leaves) Tries(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if c == Addresses && permissions.Addresses == Try || c == AdminStates && permissions.States == Try {
			all = append(all, c)
		}
	}
	return all
}
