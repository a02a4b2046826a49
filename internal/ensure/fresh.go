// SPDX-License-Identifier: Apache-2.0

package ensure

import (
	"slices"

	"weir.dev/weir/internal/lb"
)

// upOnly returns the addresses that a pool is made with: those that are not to be Down. A pool
// that is being made has no record yet, and a Down that is on no record is nobody's to take
// back. To new flows it is the same; the pool's lane adds the others, on record.
func upOnly(fresh []lb.Address) []lb.Address {
	return slices.DeleteFunc(slices.Clone(fresh), func(a lb.Address) bool { return a.AdminState == lb.Down })
}
