// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"hash/fnv"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// DriftAfter returns when a pool is looked at next for drift, after now. The pools of a load
// balancer have one moment in the period, by its name, so that one read serves them all, the reads
// are spread evenly and a restart moves none of them. A period of 0 is never.
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
	// As a distance from now, so that a clock that is set back puts off no look.
	return now.Add(begin.Sub(now))
}

// firstLook is how soon a pool in trouble is looked at.
const firstLook = time.Minute

// lookAfter returns when a pool is looked at next, after now: at its own moment in the period, or
// sooner while it is in trouble since a time: a minute after it, two minutes after that, then four,
// as long as such a wait is shorter than the period. A period of 0 is never.
func lookAfter(pool lb.PoolKey, now time.Time, period time.Duration, trouble time.Time) time.Time {
	own := DriftAfter(pool, now, period)
	if trouble.IsZero() {
		return own
	}
	for wait, at := firstLook, trouble; wait < period; wait *= 2 {
		if at = at.Add(wait); at.After(now) {
			return Earlier(own, at)
		}
	}
	return own
}

// LookAt returns when a pool is looked at next, after now. A pool into which a lost write may land
// is looked at once although none is ever: when no request of the attempt can be on its way any more.
func (h History) LookAt(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	last := h.Writes.OpenSince.Add(poolwrite.RecordOutlives)
	if period <= 0 && !h.Writes.OpenSince.IsZero() && last.After(now) {
		return last
	}
	return lookAfter(pool, now, period, h.Trouble)
}

// TroubleSince returns since when a pool is in trouble: its change was given up, or a lost write
// may land yet. A change that is given up begins anew, and what was no attempt does not count.
func TroubleSince(before time.Time, outcome poolwrite.Outcome, trouble, look bool, now time.Time) time.Time {
	switch {
	case outcome == poolwrite.Postponed, trouble && look && !before.IsZero():
		return before
	case !trouble:
		return time.Time{}
	}
	return now
}
