// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// NotifyMachinesDone ends a pool's wait for its machines. A pool without some is checked: they may have joined.
func (ls *Workers) NotifyMachinesDone(pool lb.PoolID) {
	if l := ls.findWorker(pool); l != nil {
		endMachineWait(l.queue, pool.Key())
	}
}

// endMachineWait takes effect at the end of a running attempt, which may have missed it.
func endMachineWait(q *queue, pool lb.PoolKey) {
	q.mu.Lock()
	w := q.pools[pool]
	woken := w != nil && w.endWait()
	if w != nil && !w.inFlight && w.history.HasUnusable {
		woken = true
		w.requestCheck(time.Now())
		q.setOps(pool, w, w.ops)
	}
	q.mu.Unlock()
	if woken {
		q.wakeWorker()
	}
}

// endWait ends the wait for machines, also of a running attempt. The caller holds q.mu.
func (w *poolEntry) endWait() (woken bool) {
	if w.wakePending = w.inFlight; !w.inFlight {
		w.history, woken = w.history.EndMachineWait()
	}
	return woken
}

// storeHistory stores an attempt's history. The caller holds q.mu.
func (w *poolEntry) storeHistory(h schedule.History) {
	w.history = h
	if !w.wakePending {
		return
	}
	if w.history, _ = h.EndMachineWait(); h.HasUnusable {
		w.requestCheck(time.Now())
	}
}

// requestCheck requests a check. The caller holds q.mu.
func (w *poolEntry) requestCheck(now time.Time) {
	if !w.resyncDue {
		w.resyncDue, w.resyncDueSince = true, now
	}
}

func releasePools(q *queue, ref schedule.Ref) (pools []lb.PoolID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.pools {
		if w.history.TargetHash != 0 && w.subject.Ref == ref {
			w.history.TargetHash = 0
			pools = append(pools, w.subject.Pool)
		}
	}
	return pools
}
