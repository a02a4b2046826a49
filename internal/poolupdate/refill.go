// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// fill fills pools that a load balancer write has just created empty. Nothing else reveals that a
// pool was recreated.
func (q *queue) fill(created []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range created {
		if w := q.pools[key]; w != nil {
			w.level = nil
			q.refill(key, w, now)
		}
	}
}

// fillFound fills an unexpectedly empty pool: a lost write has created it.
func (q *queue) fillFound(found lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.pools[found]; w != nil && w.level == nil && len(w.ops) == 0 && !w.inFlight {
		q.refill(found, w, now)
	}
}

// fillUnknown fills pools after a write with unknown result. Pools known to be missing are handled
// elsewhere.
func (q *queue) fillUnknown(created []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range created {
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
