// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"hash/fnv"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// DriftAfter returns the first resync after now. All pools of a load balancer are read at the same
// phase of the period, derived from its name: one read serves them, and restarts do not matter. A
// period of 0 is never.
func DriftAfter(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return time.Time{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool.LoadBalancer())) // never fails
	phase := time.Duration(h.Sum64() % uint64(period))
	begin := now.Truncate(period).Add(phase)
	if !begin.After(now) {
		begin = begin.Add(period)
	}
	// Relative to now, so that a clock set back delays no check.
	return now.Add(begin.Sub(now))
}

// firstLook is the first delay of a pool in trouble.
const firstLook = time.Minute

// lookAfter returns the next check. A pool in trouble is also checked after one, two, four minutes
// and so on, below the period. A period of 0 is never.
func lookAfter(pool lb.PoolKey, now time.Time, period time.Duration, failing time.Time) time.Time {
	own := DriftAfter(pool, now, period)
	if failing.IsZero() {
		return own
	}
	for wait, at := firstLook, failing; wait < period; wait *= 2 {
		if at = at.Add(wait); at.After(now) {
			return Earlier(own, at)
		}
	}
	return own
}

// LookAt returns the next check. Even without a period, a pool with a lost write is checked once
// that can no longer land.
func (h History) LookAt(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	last := h.Writes.OpenSince.Add(poolwrite.RecordOutlives)
	if period <= 0 && !h.Writes.OpenSince.IsZero() && last.After(now) {
		return last
	}
	return lookAfter(pool, now, period, h.Trouble)
}

// TroubleSince returns since when a pool's change is given up or a lost write may land. Giving up
// again restarts it; a postponed attempt does not count.
func TroubleSince(before time.Time, outcome poolwrite.Outcome, failing, look bool, now time.Time) time.Time {
	switch {
	case outcome == poolwrite.Postponed, failing && look && !before.IsZero():
		return before
	case !failing:
		return time.Time{}
	}
	return now
}
