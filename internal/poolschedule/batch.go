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
// that only wait for company, and that may be a part; and those that only wait for their pace, for they
// cost no write of their own then. Where they are too many for one write, it is some of each namespace.
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

// InTurn returns which of the groups are written one after the other without waiting for the end of
// each: the same as Together, in the order of their turns, up to one that has waited for an interval
// and goes by itself.
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

// isDue reports whether a group has a change that is due, or that only waits for company.
func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.looks() && !g.history.Apart && (!g.ReadyAt(interval).After(now) || g.gathers(now, interval))
}

// dealt returns the groups that are due and may be a part, and others that go along, in the order of their
// turns.
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

// Urgent returns which of the groups have admin states that are due for the first time.
func Urgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due []lb.PoolKey
	for _, g := range groups {
		if g.urgent(now, interval) {
			due = append(due, g.pool)
		}
	}
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
		!g.ownAt(interval).After(now.Add(debounce)) && !g.deferredUntil().After(now)
}

// joins reports whether a group may take part, as far as its operations tell. What fails for reasons
// of its own would only keep a trial from a verdict.
func (g Group) joins(may wholewrite.Leaves) bool {
	if g.failing() && (g.changes() && may.Addresses == wholewrite.Try || g.Admin != nil && may.States == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.Addresses != wholewrite.No) && (g.Admin == nil || may.States != wholewrite.No)
}
