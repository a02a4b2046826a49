// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
)

// maxBatchPools bounds a batch: each of its pools is recorded first.
const maxBatchPools = 100

// SelectBatch returns the pools to write in one batch: changes that are due, debounced or paced. A
// paced change costs no write of its own here. A batch that is too large takes some pools of each
// namespace.
func SelectBatch(groups []Group, now time.Time, interval time.Duration, permissions wholewrite.Permissions) []lb.PoolKey {
	due := selectFair(groups, now, interval, permissions, func(g Group) bool {
		return (g.IsPaced(now, interval) || g.IsDeferred(now, interval)) && !g.history.ExcludedFromBatch
	})
	if !slices.ContainsFunc(due, func(g Group) bool { return g.isDue(now, interval) }) {
		return nil
	}
	keys := poolKeys(due)
	slices.Sort(keys)
	return keys
}

// SelectPipeline returns the pools for overlapping writes, in turn order, up to one that is overdue and has
// to be written separately.
func SelectPipeline(groups []Group, now time.Time, interval time.Duration, permission wholewrite.Permission) []lb.PoolKey {
	permissions := wholewrite.Permissions{Addresses: permission, States: permission}
	due := selectFair(groups, now, interval, permissions, func(Group) bool { return false })
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		if g.isCheck() || g.isDue(now, interval) && g.canJoin(permissions) || now.Sub(g.ready) < interval {
			continue
		}
		if at := slices.IndexFunc(due, func(other Group) bool { return g.isBefore(other, now, interval) }); at >= 0 {
			due = due[:at]
		}
	}
	return poolKeys(due)
}

func poolKeys(groups []Group) []lb.PoolKey {
	keys := make([]lb.PoolKey, len(groups))
	for i, g := range groups {
		keys[i] = g.pool
	}
	return keys
}

// isDue reports whether a group has a change that is due or debounced.
func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.isResync() && !g.history.ExcludedFromBatch && (!g.ReadyAt(interval).After(now) || g.isDebouncing(now, interval))
}

// selectFair returns the groups, in turn order, that may join and are due or selected by include.
func selectFair(groups []Group, now time.Time, interval time.Duration, permissions wholewrite.Permissions, include func(Group) bool) []Group {
	var due []Group
	for _, g := range groups {
		if (g.isDue(now, interval) || include(g)) && g.canJoin(permissions) {
			g.ready = g.ReadyAt(interval)
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b Group) int {
		if a.isBefore(b, now, interval) {
			return -1
		}
		return 1
	})
	first, _ := turns.SelectFair(due, func(g Group) string { return g.Namespace }, maxBatchPools)
	return first
}

// minSharedChecks is the minimum of due checks for a shared read.
const minSharedChecks = 3

// SelectChecks returns the pools to check by one read, due or debounced; none if there are too
// few.
func SelectChecks(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		ready := !g.ReadyAt(interval).After(now)
		if g.isCheck() && !g.history.ExcludedFromBatch && !g.history.NeedsRead && g.history.Writes.PendingEtag == "" && (ready || g.isDebouncing(now, interval)) {
			due = append(due, g.pool)
		}
	}
	if len(due) < minSharedChecks {
		return nil
	}
	slices.Sort(due)
	return due
}

// SelectUrgent returns the pools with new admin states that are due.
func SelectUrgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if g.isUrgent(now, interval) {
			due = append(due, g.pool)
		}
	}
	return due
}

// SelectWaiting returns the due pools except checks.
func SelectWaiting(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if !g.isCheck() && !g.ReadyAt(interval).After(now) {
			due = append(due, g.pool)
		}
	}
	return due
}

func (g Group) isDebouncing(now time.Time, interval time.Duration) bool {
	return g.hasNew && !g.Retry && !MaxTime(g.NotBefore(), g.history.WaitUntil).After(now) &&
		!g.poolReadyAt(interval).After(now.Add(debounceTime)) && !g.deferredUntil().After(now)
}

// canJoin reports whether a group may join a batch. A failing pool would make a trial inconclusive.
func (g Group) canJoin(permissions wholewrite.Permissions) bool {
	if g.isFailing() && (g.hasMemberChange() && permissions.Addresses == wholewrite.Once || g.Admin != nil && permissions.States == wholewrite.Once) {
		return false
	}
	return (!g.hasMemberChange() || permissions.Addresses != wholewrite.Denied) && (g.Admin == nil || permissions.States != wholewrite.Denied)
}
