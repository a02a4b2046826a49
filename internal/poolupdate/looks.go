// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// watch makes a pool one that is looked at. The caller holds q.mu.
func (q *queue) watch(key lb.PoolKey, w *waiting, now time.Time) {
	w.driftAt = w.history.LookAt(key, now, q.driftPeriod)
	q.nextDrift = poolschedule.Earlier(q.nextDrift, w.driftAt)
}

// look marks the pools whose moment has come. What has operations is read anyway. The
// cost grows with the lane's pools, and is paid once for each look. The caller holds q.mu.
func (q *queue) look(now time.Time) {
	if q.nextDrift.IsZero() || q.nextDrift.After(now) {
		return
	}
	q.nextDrift = time.Time{}
	for key, w := range q.pools {
		if !w.driftAt.IsZero() && !w.driftAt.After(now) {
			w.driftDue = !w.inFlight
			w.driftSince = now
			q.hold(key, w, w.ops)
			w.driftAt = poolschedule.DriftAfter(key, now, q.driftPeriod)
		}
		q.nextDrift = poolschedule.Earlier(q.nextDrift, w.driftAt)
	}
}

// lookAtOthers has all pools looked at that a write of their load balancer was not made for.
// Azure took it, and if it failed in the end they are out of force as well, level or not.
func (q *queue) lookAtOthers(written []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		if !w.driftDue && !slices.Contains(written, key) {
			w.driftDue, w.driftSince = true, now
			q.hold(key, w, w.ops)
		}
	}
}
