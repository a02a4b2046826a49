// SPDX-License-Identifier: Apache-2.0

package poolschedule

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

// Together returns which of the groups are written together: those with changes that are due, or
// that only wait for company, and that may be a part. Where they are too many for one write, it is
// some of each namespace.
func Together(groups []Group, now time.Time, interval time.Duration, may wholewrite.Leaves) []lb.PoolKey {
	var due []Group
	for _, g := range groups {
		if !g.looks() && !g.history.Apart && g.joins(may) && (!g.ReadyAt(now, interval).After(now) || g.gathers(now, interval)) {
			g.ready = g.ReadyAt(now, interval)
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b Group) int {
		if a.before(b, now, interval) {
			return -1
		}
		return 1
	})
	dealt, _ := turns.Deal(due, func(g Group) string { return g.Namespace }, mostTogether)
	keys := make([]lb.PoolKey, len(dealt))
	for i, g := range dealt {
		keys[i] = g.pool
	}
	slices.Sort(keys)
	return keys
}

// gathers reports whether the group waits for company, and for nothing else.
func (g Group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !Later(g.Earliest(), g.history.HoldUntil).After(now) &&
		!g.memberAt(now, interval).After(now.Add(debounce))
}

// joins reports whether a group may take part, as far as its operations tell. What fails for reasons
// of its own would only keep a trial from a verdict.
func (g Group) joins(may wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && may.Addresses == wholewrite.Try || g.Admin != nil && may.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.Addresses != wholewrite.No) && (g.Admin == nil || may.States != wholewrite.No)
}
