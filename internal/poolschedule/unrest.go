// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Unrest says, for people, why now is no moment to try something on the load balancer that the
// group's pool is of; empty if it is one. Admin states can be tried where nodes only return: nobody
// loses a flow by a write that is ignored.
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

// failsForGood is how often in a row a pool has to fail, or to be put off, without a budget that ends
// that, to be one that fails for reasons of its own.
const failsForGood = 5

// failing reports whether the pool fails, and no end is to be seen: its last change was given up, or
// it was refused by itself, or it has been tried time and again. Such a pool has no part in a trial,
// and forbids none.
func (g Group) failing() bool {
	tries := 0
	if g.Admin != nil {
		tries = g.Admin.Tries
	}
	return g.history.GaveUp != "" || g.history.Apart && (g.Retry || tries > 0) || tries >= failsForGood || g.history.Postponed >= failsForGood
}
