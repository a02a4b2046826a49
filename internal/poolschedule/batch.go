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
		if !g.looks() && !g.history.Apart && g.joins(may) && (!g.ReadyAt(interval).After(now) || g.gathers(now, interval)) {
			g.ready = g.ReadyAt(interval)
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

// looksFrom is how many pools have to be due to be looked at for one read of their load balancer.
const looksFrom = 3

// LooksTogether returns which of the groups are looked at by one read of their load balancer: all
// that nobody waits for and that are due, or only wait for company; none if they are too few.
func LooksTogether(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		ready := !g.ReadyAt(interval).After(now)
		if g.idle() && !g.history.Apart && !g.history.Unread && g.history.Writes.Lost == "" && (ready || g.gathers(now, interval)) {
			due = append(due, g.pool)
		}
	}
	if len(due) < looksFrom {
		return nil
	}
	slices.Sort(due)
	return due
}

// WaitedFor returns which of the groups are due that somebody waits for.
func WaitedFor(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if !g.idle() && !g.ReadyAt(interval).After(now) {
			due = append(due, g.pool)
		}
	}
	return due
}

// gathers reports whether the group waits for company, and for nothing else.
func (g Group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !Later(g.Earliest(), g.history.HoldUntil).After(now) &&
		!g.memberAt(interval).After(now.Add(debounce))
}

// joins reports whether a group may take part, as far as its operations tell. What fails for reasons
// of its own would only keep a trial from a verdict.
func (g Group) joins(may wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && may.Addresses == wholewrite.Try || g.Admin != nil && may.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.Addresses != wholewrite.No) && (g.Admin == nil || may.States != wholewrite.No)
}
