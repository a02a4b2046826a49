// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
)

// StakeOfChange returns the impact of a membership change relative to the recorded addresses.
func StakeOfChange(set membership.Set, written []string) poolschedule.Stake {
	recorded := slices.Sorted(slices.Values(written))
	stake := poolschedule.Stake{Leaves: len(recorded)}
	for _, a := range set.Addresses {
		if _, retained := slices.BinarySearch(recorded, a.IP.String()); retained {
			stake.Stays++
			stake.Leaves--
		} else {
			stake.Returns++
		}
	}
	return stake
}

// StakeOfStates returns the impact of an admin state change: desired and recorded are the Down
// addresses, both sorted.
func StakeOfStates(set membership.Set, desired, recorded []string) poolschedule.Stake {
	var stake poolschedule.Stake
	for _, a := range set.Addresses {
		ip := a.IP.String()
		_, leaves := slices.BinarySearch(desired, ip)
		_, down := slices.BinarySearch(recorded, ip)
		switch {
		case leaves && !down:
			stake.Leaves++
		case down && !leaves:
			stake.Returns++
		case !leaves:
			stake.Stays++
		}
	}
	return stake
}
