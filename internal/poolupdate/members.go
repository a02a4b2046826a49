// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// byMachine reports whether a pool to be created holds network interfaces, according to its
// BackendPool.
func (l *lane) byMachine(p lb.Pool) bool {
	l.queue.mu.Lock()
	w, known := l.queue.pools[l.key(p)]
	var ref poolschedule.Ref
	if known {
		ref = w.subject.Ref
	}
	l.queue.mu.Unlock()
	if !known {
		return false
	}
	want, err := l.cfg.attempts().Desired(ref)
	return err == nil && want.Machines != nil
}

// membersLevel is the same for network interfaces. It also requires that the membership was handed
// over.
func (l *lane) membersLevel(ctx context.Context, p *parcel, observed lb.Pool, want poolwrite.Desired) bool {
	write, _, err := l.cfg.attempts().PrepareMembers(ctx, observed, want, &p.r)
	return err == nil && !write && p.r.HandOver.Level() && p.r.HandOver.Fingerprint() == p.taken.history.Brought
}

// Settled ends a pool's wait for its machines. A pool in sync without some of them is checked: they
// may have joined.
func (ls *Lanes) Settled(pool lb.PoolID) {
	ls.mu.Lock()
	l := ls.lanes[pool.LoadBalancer.Key()]
	ls.mu.Unlock()
	if l != nil {
		machinesDone(l.queue, pool.Key())
	}
}

// machinesDone ends the wait in one queue. During an attempt it takes effect at the end, because
// the attempt may have missed it.
func machinesDone(q *queue, pool lb.PoolKey) {
	q.mu.Lock()
	w := q.pools[pool]
	woken := w != nil && w.wakes()
	if w != nil && !w.inFlight && w.history.Unusable {
		woken = true
		w.isLookedAt(time.Now())
		q.hold(pool, w, w.ops)
	}
	q.mu.Unlock()
	if woken {
		q.signal()
	}
}

// wakes ends the wait for machines, also of a running attempt. The caller holds q.mu.
func (w *waiting) wakes() (woken bool) {
	if w.woken = w.inFlight; !w.inFlight {
		w.history, woken = w.history.Wake()
	}
	return woken
}

// remembers stores an attempt's history. The caller holds q.mu.
func (w *waiting) remembers(h poolschedule.History) {
	w.history = h
	if !w.woken {
		return
	}
	if w.history, _ = h.Wake(); h.Unusable {
		w.isLookedAt(time.Now())
	}
}

// isLookedAt requests a check. The caller holds q.mu.
func (w *waiting) isLookedAt(now time.Time) {
	if !w.driftDue {
		w.driftDue, w.driftSince = true, now
	}
}

// letGo clears and returns the handed-over pools of a BackendPool.
func letGo(q *queue, ref poolschedule.Ref) (pools []lb.PoolID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.pools {
		if w.history.Brought != 0 && w.subject.Ref == ref {
			w.history.Brought = 0
			pools = append(pools, w.subject.Pool)
		}
	}
	return pools
}
