// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// fill schedules the filling of pools that a load balancer write has just created and that are
// managed. A pool recreated this way is empty without any other sign. A pool without a BackendPool
// is filled by its first operation.
func (q *queue) fill(made []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range made {
		if w := q.pools[key]; w != nil {
			w.level = nil
			q.refill(key, w, now)
		}
	}
}

// fillFound schedules the filling of a pool that is unexpectedly empty with nothing pending: a
// write whose response was lost has created it.
func (q *queue) fillFound(found lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.pools[found]; w != nil && w.level == nil && len(w.ops) == 0 && !w.inFlight {
		q.refill(found, w, now)
	}
}

// fillUnknown is fill after a write with unknown result. Pools known to be missing are left to the
// code that tracks them.
func (q *queue) fillUnknown(made []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range made {
		if w := q.pools[key]; w != nil && w.level != nil {
			w.level = nil
			q.refill(key, w, now)
		}
	}
	q.signal()
}

func (q *queue) refill(key lb.PoolKey, w *waiting, now time.Time) {
	q.hold(key, w, poolschedule.Coalesce(w.ops, w.subject.AsFill(now)))
}
