// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
)

// mostTogether bounds a batch: each of its pools is recorded first.
const mostTogether = 100

// Together returns the pools to write in one batch: changes that are due, debounced or paced. A
// paced change costs no write of its own here. A batch that is too large takes some pools of each
// namespace.
func Together(groups []Group, now time.Time, interval time.Duration, permissions wholewrite.Leaves) []lb.PoolKey {
	due := dealt(groups, now, interval, permissions, func(g Group) bool {
		return (g.Paced(now, interval) || g.IsDeferred(now, interval)) && !g.history.Apart
	})
	if !slices.ContainsFunc(due, func(g Group) bool { return g.isDue(now, interval) }) {
		return nil
	}
	keys := pools(due)
	slices.Sort(keys)
	return keys
}

// InTurn returns the pools for overlapping writes, in turn order, up to one that is overdue and has
// to be written separately.
func InTurn(groups []Group, now time.Time, interval time.Duration, permission wholewrite.Leave) []lb.PoolKey {
	permissions := wholewrite.Leaves{Addresses: permission, States: permission}
	due := dealt(groups, now, interval, permissions, func(Group) bool { return false })
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		if g.idle() || g.isDue(now, interval) && g.joins(permissions) || now.Sub(g.ready) < interval {
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

// isDue reports whether a group has a change that is due or debounced.
func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.looks() && !g.history.Apart && (!g.ReadyAt(interval).After(now) || g.gathers(now, interval))
}

// dealt returns the groups, in turn order, that may join and are due or selected by include.
func dealt(groups []Group, now time.Time, interval time.Duration, permissions wholewrite.Leaves, include func(Group) bool) []Group {
	var due []Group
	for _, g := range groups {
		if (g.isDue(now, interval) || include(g)) && g.joins(permissions) {
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

// looksFrom is the minimum of due checks for a shared read.
const looksFrom = 3

// LooksTogether returns the pools to check by one read, due or debounced; none if there are too
// few.
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

// Urgent returns the pools with new admin states that are due.
func Urgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if g.urgent(now, interval) {
			due = append(due, g.pool)
		}
	}
	return due
}

// WaitedFor returns the due pools except checks.
func WaitedFor(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if !g.idle() && !g.ReadyAt(interval).After(now) {
			due = append(due, g.pool)
		}
	}
	return due
}

func (g Group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !Later(g.Earliest(), g.history.HoldUntil).After(now) &&
		!g.ownAt(interval).After(now.Add(debounce)) && !g.deferredUntil().After(now)
}

// joins reports whether a group may join a batch. A failing pool would make a trial inconclusive.
func (g Group) joins(permissions wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && permissions.Addresses == wholewrite.Try || g.Admin != nil && permissions.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || permissions.Addresses != wholewrite.No) && (g.Admin == nil || permissions.States != wholewrite.No)
}
