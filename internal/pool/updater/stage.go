// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// StagePools returns the pools for a write of the whole load balancer: existing ones unchanged, new ones
// empty. Azure was seen to report success while it ignored existing pools and created new ones empty,
// so each pool has a write of its own. The caller holds the load balancer's lock (see Lock). pools are
// identified by name; a pool to create has no etag.
//
// Call written under the same lock, with the pools as Azure shows them after the write, or with nil
// if the write failed or was not sent; mayLand is then true if it may still take effect.
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
			l.fillShown(created, shown)
		case mayLand:
			l.queue.fillUnknown(created, time.Now())
		}
	}
}

// fillShown fills the pools that a write has created, and those that are unexpectedly empty.
func (l *worker) fillShown(created []lb.PoolKey, shown []lb.Pool) {
	now := time.Now()
	for _, p := range shown {
		if len(p.Addresses) == 0 {
			l.queue.fillIfEmpty(l.poolKey(p), now)
		}
	}
	l.queue.fillCreated(created, now)
	l.queue.wakeWorker() // operations may have been added since
}
