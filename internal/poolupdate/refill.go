// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// fill has pools filled at once that a write of their load balancer has made this moment, and
// that somebody keeps. One that was level before it went is empty now, and nothing else says
// so. A pool without a BackendPool is filled by the first operation that comes for it.
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

// fillFound has a pool filled that was found empty, and for which nothing waits, though it was
// not there when it was looked at last: a write made it whose answer was lost.
func (q *queue) fillFound(found lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.pools[found]; w != nil && w.level == nil && len(w.ops) == 0 && !w.inFlight {
		q.refill(found, w, now)
	}
}

// fillUnknown is fill after a write whose fate is unknown. What is known to be missing stays
// with whoever looks after that: he finds out when it is there.
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
