// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// lookPatience is the timeout of a read for several pools: a little more than a slow Azure's
// minute. After it each pool is read separately.
const lookPatience = 75 * time.Second

// settlesFor limits how long the results of one read are used while other work is due, because each
// new status is an API server request.
const settlesFor = time.Second

// lookTogether checks all due pools by one read of the load balancer. Those out of sync get their
// own attempts. The caller holds the worker's lock and the lease.
func (l *lane) lookTogether(ctx context.Context, due []lb.PoolKey) {
	updates := l.takeAll(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // those not in the batch
	timeoutCtx, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	defer cancel()
	b, err := l.readAll(timeoutCtx)
	if err != nil {
		b = lb.LoadBalancer{} // no pool was read
	}
	index, read := l.index(b), time.Now()
	for i, p := range updates {
		if time.Since(read) > settlesFor && len(l.those(poolschedule.WaitedFor, time.Now())) > 0 {
			for _, p := range updates[i:] {
				l.queue.back(p.taken, p.ops)
			}
			return
		}
		if f := fault.From(err); f != nil && f.Code != fault.CodeResting { // its pools may not be throttled
			l.queue.wait(p.taken, f.RetryAt, time.Time{})
		}
		if at, found := index[p.taken.pool]; found && l.isLevel(timeoutCtx, &p, b.Pools[at]) {
			l.ends(ctx, timeoutCtx, p, nil)
		} else {
			l.queue.differs(p.taken, p.ops)
		}
	}
}

// readAll reads the load balancer for several pools. A Retry-After also delays overlapping updates,
// which end with this read.
func (l *lane) readAll(ctx context.Context) (lb.LoadBalancer, error) {
	timeoutCtx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	b, err := l.cfg.Whole.GetLoadBalancer(timeoutCtx, l.id)
	if f := fault.From(err); f != nil {
		l.rowAfter = f.RetryAt
	}
	return b, err
}

// isLevel reports whether a pool needs neither a write nor a record.
func (l *lane) isLevel(ctx context.Context, p *parcel, observed lb.Pool) bool {
	want, err := l.cfg.attempts().Desired(p.ops[0].Ref)
	if err == nil && want.Machines != nil {
		return l.membersLevel(ctx, p, observed, want)
	}
	if err != nil || observed.NIC || p.r.Read(observed, false) != nil {
		return false
	}
	write, _, err := p.r.Prepare(observed, want, l.cfg.AdminState)
	return !write && err == nil
}

// differs requeues a pool to be attempted like a change.
func (q *queue) differs(t taken, ops []poolschedule.Operation) {
	for i := range ops {
		ops[i].Differs = true
	}
	q.mu.Lock()
	t.of.history.Unread = true // a resync has no operation to carry the flag
	q.mu.Unlock()
	q.back(t, ops)
}

// watch schedules a resync. The caller holds q.mu.
func (q *queue) watch(key lb.PoolKey, w *waiting, now time.Time) {
	w.driftAt = w.history.LookAt(key, now, q.driftPeriod)
	q.nextDrift = poolschedule.Earlier(q.nextDrift, w.driftAt)
}

// look marks pools that are due for a resync, in O(pools) per due time. The caller holds q.mu.
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

// lookAtOthers schedules checks of the pools not in written: if an accepted write of the load
// balancer fails in the end, they lose their effect, too.
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
