// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// unrest says, for people, why now is no moment to try something on the load balancer that the
// group's pool is of; empty if it is one. Admin states can be tried where nodes only return: nobody
// loses a flow by a write that is ignored.
func (g group) unrest(now time.Time, c wholewrite.Change) string {
	switch {
	case g.earliest().After(now):
		return "a pool waits for a Retry-After"
	case g.failing():
		return ""
	case g.admin != nil && g.admin.Stake.Leaves > 0:
		return "nodes drain"
	case g.admin != nil && c != wholewrite.AdminStates:
		return "nodes return"
	case g.retry, g.admin != nil && g.admin.tries > 0:
		return "a pool fails"
	case g.history.writes.Lost != "":
		return "the fate of a write is not known"
	case g.history.postponed > 0:
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
func (g group) failing() bool {
	tries := 0
	if g.admin != nil {
		tries = g.admin.tries
	}
	return g.history.gaveUp != "" || g.history.apart && (g.retry || tries > 0) || tries >= failsForGood || g.history.postponed >= failsForGood
}
