// SPDX-License-Identifier: Apache-2.0

package wholewrite

// Permissions are the permissions for one write of several pools.
type Permissions struct{ Addresses, States Permission }

// IsEmpty reports whether nothing is permitted.
func (permissions Permissions) IsEmpty() bool {
	return permissions.Addresses == Denied && permissions.States == Denied
}

// CanInclude reports whether a pool's change is permitted. A trial never takes a node Down, nor does it
// include a rewrite without changes.
func (permissions Permissions) CanInclude(addresses, states, takesDown bool) bool {
	switch {
	case !addresses && !states:
		return permissions.Addresses == Allowed
	case addresses && permissions.Addresses == Denied, states && permissions.States == Denied:
		return false
	}
	return permissions.States != Once || !takesDown
}

// TrialChanges returns the changes on trial.
func (permissions Permissions) TrialChanges(changes []Change) []Change {
	var all []Change
	for _, c := range changes {
		if c == Addresses && permissions.Addresses == Once || c == AdminStates && permissions.States == Once {
			all = append(all, c)
		}
	}
	return all
}
