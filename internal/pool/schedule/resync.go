// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"hash/fnv"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/ratelimit"
)

// NextResync returns the first resync after now; a period of 0 is never. One read serves all pools of a load balancer,
// at a phase derived from its name, so that restarts do not matter.
func NextResync(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
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

const firstCheckDelay = time.Minute

// nextCheck also checks a pool in trouble after one, two, four minutes and so on, below the period.
func nextCheck(pool lb.PoolKey, now time.Time, period time.Duration, failing time.Time) time.Time {
	own := NextResync(pool, now, period)
	if failing.IsZero() {
		return own
	}
	for wait, at := firstCheckDelay, failing; wait < period; wait *= 2 {
		if at = at.Add(wait); at.After(now) {
			return ratelimit.MinTime(own, at)
		}
	}
	return own
}

// NextCheckAt returns the next check. A pool with a lost write is always checked once that can no longer land.
func (h History) NextCheckAt(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	last := h.Writes.PendingSince.Add(diff.PendingWriteTTL)
	if period <= 0 && !h.Writes.PendingSince.IsZero() && last.After(now) {
		return last
	}
	return nextCheck(pool, now, period, h.ErrorSince)
}

// UpdateErrorSince returns since when a change is given up or a lost write may land. Giving up again restarts it.
func UpdateErrorSince(before time.Time, outcome diff.Outcome, failing, look bool, now time.Time) time.Time {
	switch {
	case outcome == diff.Postponed, failing && look && !before.IsZero():
		return before
	case !failing:
		return time.Time{}
	}
	return now
}

// Checks of a load balancer share a read: they wait until none has come for DebounceTime, but at most
// MaxDebounce. A starting process discovers its pools one by one.
const (
	DebounceTime = time.Second
	MaxDebounce  = 10 * time.Second
)

// Debouncer debounces checks.
type Debouncer struct{ since, last time.Time }

// AddCheck records a check.
func (c *Debouncer) AddCheck(now time.Time) {
	if now.Sub(c.last) > DebounceTime {
		c.since = now
	}
	c.last = now
}

// ReadyAt returns when the debouncing ends; zero is now.
func (c Debouncer) ReadyAt() time.Time {
	if c.last.Equal(c.since) {
		return time.Time{} // all came at once
	}
	return ratelimit.MinTime(c.last.Add(DebounceTime), c.since.Add(MaxDebounce))
}
