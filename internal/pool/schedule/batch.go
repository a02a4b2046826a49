// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// SelectWrites returns the pools to write together, in turn order, up to one that is overdue and has to be
// written separately. A selection that is too large takes some pools of each namespace.
func SelectWrites(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due, late []claim
	for _, g := range groups {
		if c := g.newClaim(now, interval); g.isDue(now, interval) {
			due = append(due, c)
		} else if !g.IsCheck() && now.Sub(c.ready) >= interval {
			late = append(late, c)
		}
	}
	slices.SortFunc(due, func(a, b claim) int {
		if a.isBefore(b, now, interval) {
			return -1
		}
		return 1
	})
	due, _ = ratelimit.SelectFair(due, func(c claim) string { return c.namespace }, maxOverlap)
	for _, c := range late {
		if at := slices.IndexFunc(due, func(other claim) bool { return c.isBefore(other, now, interval) }); at >= 0 {
			due = due[:at]
		}
	}
	keys := make([]lb.PoolKey, len(due))
	for i, c := range due {
		keys[i] = c.pool
	}
	return keys
}

func selectKeys(groups []Group, match func(Group) bool) (keys []lb.PoolKey) {
	for _, g := range groups {
		if match(g) {
			keys = append(keys, g.Pool)
		}
	}
	return keys
}

func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.isResync() && !g.history.ExcludedFromBatch && (!g.ReadyAt(interval).After(now) || g.isDebouncing(now, interval))
}

const minSharedChecks = 3

// SelectChecks returns the pools to check by one read, due or debounced; none if there are too few.
func SelectChecks(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	due := selectKeys(groups, func(g Group) bool {
		return g.IsCheck() && !g.history.ExcludedFromBatch && !g.history.NeedsRead && g.history.Writes.PendingEtag == "" &&
			(!g.ReadyAt(interval).After(now) || g.isDebouncing(now, interval))
	})
	if len(due) < minSharedChecks {
		return nil
	}
	slices.Sort(due)
	return due
}

// SelectUrgent returns the pools with new admin states that are due.
func SelectUrgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	return selectKeys(groups, func(g Group) bool { return g.isUrgent(now, interval) })
}

// SelectAdminSince selects the pools with admin states that are due, were queued after start and have not failed.
func SelectAdminSince(start time.Time) func([]Group, time.Time, time.Duration) []lb.PoolKey {
	return func(groups []Group, now time.Time, _ time.Duration) []lb.PoolKey {
		return selectKeys(groups, func(g Group) bool {
			return g.Admin != nil && g.Admin.FailedAttempts == 0 && g.Admin.QueuedAt.After(start) && !g.AdminRetryAt().After(now)
		})
	}
}

// SelectWaiting returns the due pools except checks.
func SelectWaiting(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	return selectKeys(groups, func(g Group) bool { return !g.IsCheck() && !g.ReadyAt(interval).After(now) })
}

func (g Group) isDebouncing(now time.Time, interval time.Duration) bool {
	return g.hasNew && !g.Retry && !ratelimit.MaxTime(g.NotBefore(), g.history.WaitUntil).After(now) &&
		!g.poolReadyAt(interval).After(now.Add(debounceTime)) && !g.deferredUntil().After(now)
}
