// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"

	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// ImpactOfChange returns the impact of a membership change relative to the recorded addresses.
func ImpactOfChange(set membership.Set, written []string) schedule.Impact {
	recorded := slices.Sorted(slices.Values(written))
	impact := schedule.Impact{Stopping: len(recorded)}
	for _, a := range set.Addresses {
		if _, retained := slices.BinarySearch(recorded, a.IP.String()); retained {
			impact.Serving++
			impact.Stopping--
		} else {
			impact.Starting++
		}
	}
	return impact
}

// ImpactOfStates returns the impact of an admin state change: desired and recorded are the Down
// addresses, both sorted.
func ImpactOfStates(set membership.Set, desired, recorded []string) schedule.Impact {
	var impact schedule.Impact
	for _, a := range set.Addresses {
		ip := a.IP.String()
		_, leaves := slices.BinarySearch(desired, ip)
		_, down := slices.BinarySearch(recorded, ip)
		switch {
		case leaves && !down:
			impact.Stopping++
		case down && !leaves:
			impact.Starting++
		case !leaves:
			impact.Serving++
		}
	}
	return impact
}
