// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// StagePools returns the pools for a write of the whole load balancer: new ones, without an etag, empty, because Azure
// was seen to ignore existing pools and to create new ones empty. The caller holds Lock, also for written, which takes
// the pools after the write, or nil if it failed or was not sent; mayLand is then true if it may still take effect.
func (ls *Workers) StagePools(id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, written func(shown []lb.Pool, mayLand bool)) {
	ls.mu.Lock()
	l := ls.getWorker(id)
	ls.mu.Unlock()
	next = slices.Clone(pools)
	var created []lb.PoolKey
	for i, p := range next {
		if p.Etag == "" {
			next[i].Addresses = nil
			created = append(created, l.poolKey(p))
		}
	}
	return next, func(shown []lb.Pool, mayLand bool) {
		switch {
		case shown != nil:
			var empty []lb.PoolKey
			for _, p := range shown {
				if len(p.Addresses) == 0 {
					empty = append(empty, l.poolKey(p))
				}
			}
			l.queue.fillPools(empty, func(w *poolEntry) bool { return w.syncedFingerprint == nil && len(w.ops) == 0 && !w.inFlight }) // a lost write has created it
			l.queue.fillPools(created, func(*poolEntry) bool { return true })
		case mayLand: // pools known to be missing are handled elsewhere
			l.queue.fillPools(created, func(w *poolEntry) bool { return w.syncedFingerprint != nil })
		}
	}
}

// fillPools fills pools that a write has created empty. Nothing else reveals that a pool was recreated.
func (q *queue) fillPools(created []lb.PoolKey, match func(*poolEntry) bool) {
	q.mu.Lock()
	for _, key := range created {
		if w := q.pools[key]; w != nil && match(w) {
			w.syncedFingerprint = nil
			q.setOps(key, w, schedule.MergeOperations(w.ops, w.subject.NewFill(time.Now())))
		}
	}
	q.mu.Unlock()
	q.wakeWorker()
}
