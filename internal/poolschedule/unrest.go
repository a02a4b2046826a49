// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Unrest returns why a trial on the load balancer must not run now, or "". While nodes only return,
// admin states may be tried: an ignored write then loses no flow.
func (g Group) Unrest(now time.Time, c wholewrite.Change) string {
	switch {
	case g.Earliest().After(now):
		return "a pool waits for a Retry-After"
	case g.failing():
		return ""
	case g.Admin != nil && g.Admin.Stake.Leaves > 0:
		return "nodes drain"
	case g.Admin != nil && c != wholewrite.AdminStates:
		return "nodes return"
	case g.Retry, g.Admin != nil && g.Admin.Tries > 0:
		return "a pool fails"
	case g.history.Writes.Lost != "":
		return "the fate of a write is not known"
	case g.history.Postponed > 0:
		return "something of Weir's own is not ready"
	}
	return ""
}

// failsForGood is the number of failures or postponements without a retry limit after which a pool
// counts as failing.
const failsForGood = 5

// failing reports whether the pool fails persistently. Such a pool joins no trial and blocks none.
func (g Group) failing() bool {
	tries := 0
	if g.Admin != nil {
		tries = g.Admin.Tries
	}
	return g.history.GaveUp != "" || g.history.Apart && (g.Retry || tries > 0) || tries >= failsForGood || g.history.Postponed >= failsForGood
}
