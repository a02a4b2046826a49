// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// sharedReadTimeout is a little more than the minute that a slow Azure takes. After it each pool is read separately.
const sharedReadTimeout = 75 * time.Second

// sharedReadTTL limits the use of one read while other work is due: each changed status costs a request to the API
// server.
const sharedReadTTL = time.Second

// checkPools checks pools by one read. Those out of sync get their own attempts. The caller holds w.slot and the lease.
func (w *worker) checkPools(ctx context.Context, due []lb.PoolKey) {
	var updates []poolUpdate
	for _, key := range due {
		if p, ok := w.takeUpdate(key); ok {
			updates = append(updates, p)
		}
	}
	w.reportWaits(blocker{cause: CauseBehind}, time.Now()) // those not in the batch
	timeoutCtx, cancel := context.WithTimeout(ctx, diff.AttemptDeadline)
	defer cancel()
	b, err := w.readLoadBalancer(timeoutCtx)
	if err != nil {
		b = lb.LoadBalancer{} // no pool was read
	}
	index, read := w.indexPools(b), time.Now()
	for i, p := range updates {
		if time.Since(read) > sharedReadTTL && len(w.queue.selectPools(schedule.SelectWaiting, time.Now())) > 0 {
			for _, p := range updates[i:] {
				w.queue.requeueBatch(p.takenUpdate)
			}
			return
		}
		if at, found := index[p.pool]; found && w.isInSync(timeoutCtx, &p, b.Pools[at]) {
			w.finishUpdate(ctx, timeoutCtx, p, nil)
		} else {
			for i := range p.ops {
				p.ops[i].OutOfSync = true
			}
			w.requeueUpdate(p, false, func(h *schedule.History) {
				h.NeedsRead = true                                                               // a resync has no operation to carry the flag
				if f := armerror.FromError(err); f != nil && f.Code != armerror.CodeRetryAfter { // its pools may not be throttled
					h.NotBefore = ratelimit.MaxTime(h.NotBefore, f.RetryAt)
				}
			})
		}
	}
}

// readLoadBalancer also delays overlapping updates by a Retry-After: they end with this read.
func (w *worker) readLoadBalancer(ctx context.Context) (lb.LoadBalancer, error) {
	timeoutCtx, cancel := context.WithTimeout(ctx, sharedReadTimeout)
	defer cancel()
	b, err := w.cfg.LoadBalancers.GetLoadBalancer(timeoutCtx, w.id)
	if f := armerror.FromError(err); f != nil {
		w.overlapAfter = ratelimit.MaxTime(w.overlapAfter, f.RetryAt)
	}
	return b, err
}

func (w *worker) isInSync(ctx context.Context, p *poolUpdate, observed lb.Pool) bool {
	want, err := w.cfg.desiredPool(p.ops[0].Ref)
	if err == nil && want.Machines != nil { // the membership has to be handed over, too
		write, _, err := w.cfg.prepareMembers(ctx, observed, want, &p.result)
		return err == nil && !write && p.result.MachineTarget.IsInSync() && p.result.MachineTarget.Fingerprint() == p.history.TargetHash
	}
	if err != nil || observed.NIC || p.result.RecordRead(observed, false) != nil {
		return false
	}
	write, _, err := p.result.PrepareAddresses(observed, want, w.cfg.AdminState)
	return !write && err == nil
}

// The caller holds q.mu.
func (q *queue) scheduleCheck(key lb.PoolKey, p *poolEntry, now time.Time) {
	p.resyncAt = p.history.NextCheckAt(key, now, q.resyncPeriod)
	q.nextResync = ratelimit.MinTime(q.nextResync, p.resyncAt)
}

// markDueChecks takes O(pools) per due time. The caller holds q.mu.
func (q *queue) markDueChecks(now time.Time) {
	if q.nextResync.IsZero() || q.nextResync.After(now) {
		return
	}
	q.nextResync = time.Time{}
	for key, p := range q.pools {
		if !p.resyncAt.IsZero() && !p.resyncAt.After(now) {
			p.resyncDue = !p.inFlight
			p.resyncDueSince = now
			q.setOps(key, p, p.ops)
			p.resyncAt = schedule.NextResync(key, now, q.resyncPeriod)
		}
		q.nextResync = ratelimit.MinTime(q.nextResync, p.resyncAt)
	}
}

// checkOthers requests a check of the pools that were not written: a write that fails at its end may undo their changes,
// too.
func (q *queue) checkOthers(isWritten func(lb.PoolKey) bool, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, p := range q.pools {
		if !isWritten(key) {
			p.requestCheck(now)
			q.setOps(key, p, p.ops)
		}
	}
}
