// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// fillCreated fills pools that a load balancer write has just created empty. Nothing else reveals that a
// pool was recreated.
func (q *queue) fillCreated(created []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range created {
		if w := q.pools[key]; w != nil {
			w.syncedFingerprint = nil
			q.addFill(key, w, now)
		}
	}
}

// fillIfEmpty fills an unexpectedly empty pool: a lost write has created it.
func (q *queue) fillIfEmpty(found lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.pools[found]; w != nil && w.syncedFingerprint == nil && len(w.ops) == 0 && !w.inFlight {
		q.addFill(found, w, now)
	}
}

// fillUnknown fills pools after a write with unknown result. Pools known to be missing are handled
// elsewhere.
func (q *queue) fillUnknown(created []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range created {
		if w := q.pools[key]; w != nil && w.syncedFingerprint != nil {
			w.syncedFingerprint = nil
			q.addFill(key, w, now)
		}
	}
	q.wakeWorker()
}

func (q *queue) addFill(key lb.PoolKey, w *poolEntry, now time.Time) {
	q.setOps(key, w, schedule.MergeOperations(w.ops, w.subject.NewFill(now)))
}
