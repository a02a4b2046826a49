// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Unrest returns why a trial on the group's load balancer must not run now, or "". Admin states may
// be tried while nodes only return, because an ignored write then loses no flow.
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

// failsForGood is the number of consecutive failures, or postponements, of an operation without a
// retry limit after which its pool counts as failing.
const failsForGood = 5

// failing reports whether the pool fails persistently: its change was given up, it was rejected
// separately, or many attempts failed. Such a pool joins no trial and blocks none.
func (g Group) failing() bool {
	tries := 0
	if g.Admin != nil {
		tries = g.Admin.Tries
	}
	return g.history.GaveUp != "" || g.history.Apart && (g.Retry || tries > 0) || tries >= failsForGood || g.history.Postponed >= failsForGood
}
