// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// Minimum of due pools for a batched or overlapping update. With known support, two save one
// operation; a trial needs more.
const (
	wholeFrom      = 3
	wholeKnownFrom = 2
)

// together returns the pools for one load balancer write and the permitted changes; none if there
// are too few, or if next, which has its turn, cannot join.
func (l *lane) together(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) || waitingIn(l.queue) < wholeKnownFrom { // most changes come alone
		return nil, wholewrite.Leaves{}
	}
	permissions := l.verdicts.May(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	if permissions.None() {
		return nil, permissions
	}
	for _, part := range []struct {
		from        int
		permissions wholewrite.Leaves
	}{{wholeFrom, permissions}, {wholeKnownFrom, seen(l, permissions)}} {
		due := l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
			return poolschedule.Together(groups, now, l.cfg.Interval, part.permissions)
		})
		if len(due) >= part.from && slices.Contains(due, next) {
			return due, part.permissions
		}
	}
	return nil, permissions
}

// seen removes permissions for changes that Azure is not known to apply.
func seen(l *lane, permissions wholewrite.Leaves) wholewrite.Leaves {
	if l.answer(wholewrite.Addresses) != behaviour.Taken {
		permissions.Addresses = wholewrite.No
	}
	if l.answer(wholewrite.AdminStates) != behaviour.Taken {
		permissions.States = wholewrite.No
	}
	return permissions
}

// inTurn returns the pools for overlapping writes, in order, and the permission; none if there are
// too few, or if next cannot join.
func (l *lane) inTurn(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Leave) {
	if l.cfg.Pipeline == nil || l.cfg.Whole == nil || l.rowAfter.After(now) {
		return nil, wholewrite.No
	}
	permission := l.verdicts.MayOverlap(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	if permission == wholewrite.No {
		return nil, permission
	}
	due := l.dueInTurn(now, permission)
	from := wholeFrom
	if l.answer(wholewrite.Overlapping) == behaviour.Supersede {
		from = wholeKnownFrom
	}
	if len(due) < from || !slices.Contains(due, next) {
		return nil, permission
	}
	return due, permission
}

// looks returns the pools to check by one read; nil if each is read separately.
func (l *lane) looks(now time.Time) []lb.PoolKey {
	if l.cfg.Whole == nil {
		return nil
	}
	return l.those(poolschedule.LooksTogether, now)
}

func (l *lane) those(selectFn func([]poolschedule.Group, time.Time, time.Duration) []lb.PoolKey, now time.Time) []lb.PoolKey {
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey { return selectFn(groups, now, l.cfg.Interval) })
}

func (l *lane) dueInTurn(now time.Time, permission wholewrite.Leave) []lb.PoolKey {
	return l.queue.choose(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.InTurn(groups, now, l.cfg.Interval, permission)
	})
}

func changesIn(writes []parcel) []wholewrite.Change {
	var addresses, states bool
	for _, p := range writes {
		a, s := p.r.Todo.Changes()
		addresses, states = addresses || a, states || s
	}
	var all []wholewrite.Change
	if addresses {
		all = append(all, wholewrite.Addresses)
	}
	if states {
		all = append(all, wholewrite.AdminStates)
	}
	return all
}

// allowed reports whether a pool's change may join a batched update.
func allowed(permissions wholewrite.Leaves, todo poolwrite.Change) bool {
	addresses, states := todo.Changes()
	return permissions.Allow(addresses, states, len(todo.Downed) > 0)
}

// brings reports whether a load balancer write is known to update the pool. Azure has been seen to
// report success while it ignored existing pools and created new ones empty. A load balancer that
// ignores admin states is excluded.
func (l *lane) brings(p lb.Pool) bool {
	if p.Etag == "" {
		return l.cfg.Behaviour.WholeWriteNewPools == behaviour.Filled
	}
	return l.answer(wholewrite.Addresses) == behaviour.Taken && l.answer(wholewrite.AdminStates) != behaviour.Ignored
}

// bringsStates does the same for admin state changes.
func (l *lane) bringsStates(todo poolwrite.Change) bool {
	_, states := todo.Changes()
	return !states || l.answer(wholewrite.AdminStates) == behaviour.Taken
}

func (l *lane) answer(c wholewrite.Change) behaviour.Answer {
	return l.verdicts.Answer(l.id.SubscriptionID, c, time.Now())
}

// empty removes the addresses, which the worker adds after creation.
func empty(p lb.Pool) lb.Pool {
	p.Addresses = nil
	return p
}
