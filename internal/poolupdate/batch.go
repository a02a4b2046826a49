// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
)

// mostTogether bounds the pools of one write: each is recorded before, and nobody waits for
// the records of a thousand.
const mostTogether = 100

// together returns which of the groups are written together: those with changes that are due, or
// that only wait for company, and that may be a part. Where they are too many for one write, it is
// some of each namespace.
func together(groups []group, now time.Time, interval time.Duration, may wholewrite.Leaves) []lb.PoolKey {
	var due []group
	for _, g := range groups {
		if !g.looks() && !g.history.apart && g.joins(may) && (!g.readyAt(now, interval).After(now) || g.gathers(now, interval)) {
			g.ready = g.readyAt(now, interval)
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b group) int {
		if a.before(b, now, interval) {
			return -1
		}
		return 1
	})
	dealt, _ := turns.Deal(due, func(g group) string { return g.namespace }, mostTogether)
	keys := make([]lb.PoolKey, len(dealt))
	for i, g := range dealt {
		keys[i] = g.pool
	}
	slices.Sort(keys)
	return keys
}

// gathers reports whether the group waits for company, and for nothing else.
func (g group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.retry && !later(g.earliest(), g.history.holdUntil).After(now) &&
		!g.memberAt(now, interval).After(now.Add(debounce))
}

// joins reports whether a group may take part, as far as its operations tell. What fails for reasons
// of its own would only keep a trial from a verdict.
func (g group) joins(may wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && may.Addresses == wholewrite.Try || g.admin != nil && may.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.Addresses != wholewrite.No) && (g.admin == nil || may.States != wholewrite.No)
}
