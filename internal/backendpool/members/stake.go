// SPDX-License-Identifier: Apache-2.0

package members

import (
	"slices"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
)

// StakeOfChange counts what a change of the membership is about, by what is on record as written.
func StakeOfChange(set membership.Set, written []string) poolschedule.Stake {
	there := slices.Sorted(slices.Values(written))
	stake := poolschedule.Stake{Leaves: len(there)}
	for _, a := range set.Addresses {
		if _, stays := slices.BinarySearch(there, a.IP.String()); stays {
			stake.Stays++
			stake.Leaves--
		} else {
			stake.Returns++
		}
	}
	return stake
}

// StakeOfStates counts what a change of admin states is about: shall are the members that are to be
// Down, are those on record as Down. Both are sorted.
func StakeOfStates(set membership.Set, shall, are []string) poolschedule.Stake {
	var stake poolschedule.Stake
	for _, a := range set.Addresses {
		ip := a.IP.String()
		_, leaves := slices.BinarySearch(shall, ip)
		_, down := slices.BinarySearch(are, ip)
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
