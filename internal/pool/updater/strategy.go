// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// selectWrites returns the pools to write together, in order; none if next has to be written separately, or
// is the only one.
func (l *worker) selectWrites(now time.Time, next lb.PoolKey) []lb.PoolKey {
	if l.cfg.Pipeline == nil || l.cfg.LoadBalancers == nil || l.overlapAfter.After(now) || l.overlap.Limit() < 2 {
		return nil
	}
	if due := l.selectPools(schedule.SelectWrites, now); len(due) > 1 && slices.Contains(due, next) {
		return due
	}
	return nil
}

// selectChecks returns the pools to check by one read; nil if each is read separately.
func (l *worker) selectChecks(now time.Time) []lb.PoolKey {
	if l.cfg.LoadBalancers == nil {
		return nil
	}
	return l.selectPools(schedule.SelectChecks, now)
}

func (l *worker) selectPools(selectFn func([]schedule.Group, time.Time, time.Duration) []lb.PoolKey, now time.Time) []lb.PoolKey {
	return l.queue.selectPools(now, func(groups []schedule.Group) []lb.PoolKey { return selectFn(groups, now, l.cfg.Interval) })
}
