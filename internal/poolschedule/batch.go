// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
)

// mostTogether limits the pools of one write, because each is recorded before.
const mostTogether = 100

// Together returns the pools to write in one batch: due changes, changes that only wait for
// debouncing, and changes that only wait for their pace, which cost no write of their own here. If
// there are too many, each namespace gets some.
func Together(groups []Group, now time.Time, interval time.Duration, may wholewrite.Leaves) []lb.PoolKey {
	due := dealt(groups, now, interval, may, func(g Group) bool {
		return (g.Paced(now, interval) || g.IsDeferred(now, interval)) && !g.history.Apart
	})
	if !slices.ContainsFunc(due, func(g Group) bool { return g.isDue(now, interval) }) {
		return nil
	}
	keys := pools(due)
	slices.Sort(keys)
	return keys
}

// InTurn returns the pools for overlapping writes: the same as Together, in turn order, up to a
// pool that has waited for an interval and has to be written separately.
func InTurn(groups []Group, now time.Time, interval time.Duration, leave wholewrite.Leave) []lb.PoolKey {
	may := wholewrite.Leaves{Addresses: leave, States: leave}
	due := dealt(groups, now, interval, may, func(Group) bool { return false })
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		if g.idle() || g.isDue(now, interval) && g.joins(may) || now.Sub(g.ready) < interval {
			continue
		}
		if at := slices.IndexFunc(due, func(other Group) bool { return g.before(other, now, interval) }); at >= 0 {
			due = due[:at]
		}
	}
	return pools(due)
}

func pools(groups []Group) []lb.PoolKey {
	keys := make([]lb.PoolKey, len(groups))
	for i, g := range groups {
		keys[i] = g.pool
	}
	return keys
}

// isDue reports whether a group has a change that is due or only waits for debouncing.
func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.looks() && !g.history.Apart && (!g.ReadyAt(interval).After(now) || g.gathers(now, interval))
}

// dealt returns, in turn order, the groups that are due or selected by along and may join the
// batch.
func dealt(groups []Group, now time.Time, interval time.Duration, may wholewrite.Leaves, along func(Group) bool) []Group {
	var due []Group
	for _, g := range groups {
		if (g.isDue(now, interval) || along(g)) && g.joins(may) {
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
	first, _ := turns.Deal(due, func(g Group) string { return g.Namespace }, mostTogether)
	return first
}

// looksFrom is the number of due checks from which one read of the load balancer is used.
const looksFrom = 3

// LooksTogether returns the pools to check by one read of their load balancer: checks that are due
// or only wait for debouncing; none if there are too few.
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

// Urgent returns the pools with admin states that are due for the first time.
func Urgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if g.urgent(now, interval) {
			due = append(due, g.pool)
		}
	}
	return due
}

// WaitedFor returns the due pools with more than a check.
func WaitedFor(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if !g.idle() && !g.ReadyAt(interval).After(now) {
			due = append(due, g.pool)
		}
	}
	return due
}

// gathers reports whether the group only waits for debouncing.
func (g Group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !Later(g.Earliest(), g.history.HoldUntil).After(now) &&
		!g.ownAt(interval).After(now.Add(debounce)) && !g.deferredUntil().After(now)
}

// joins reports whether a group may join the batch, as far as its operations show. Failing pools
// are kept out of trials, which they would only make inconclusive.
func (g Group) joins(may wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && may.Addresses == wholewrite.Try || g.Admin != nil && may.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.Addresses != wholewrite.No) && (g.Admin == nil || may.States != wholewrite.No)
}
