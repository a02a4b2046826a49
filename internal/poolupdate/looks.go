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

// lookPatience bounds a read that serves several pools: one that nobody answers keeps their lane no
// longer, and each is read by itself then. It is a little more than the minute of an Azure that is slow.
const lookPatience = 75 * time.Second

// settlesFor is how long what a look has found is settled while something else is due: each status that
// says something new is a request to the API server. The rest is read again.
const settlesFor = time.Second

// lookTogether reads a load balancer once for all pools that are due to be looked at. Those that are
// level are settled. What the read does not tell of a pool, or tells of one that is not level, is for
// an attempt of its own. The caller holds the lane and the lease.
func (l *lane) lookTogether(ctx context.Context, due []lb.PoolKey) {
	parcels := l.takeAll(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // the others
	within, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	defer cancel()
	b, err := l.readAll(within)
	if err != nil {
		b = lb.LoadBalancer{} // it shows none
	}
	index, read := l.index(b), time.Now()
	for i, p := range parcels {
		if time.Since(read) > settlesFor && len(l.those(poolschedule.WaitedFor, time.Now())) > 0 {
			for _, p := range parcels[i:] {
				l.queue.back(p.taken, p.ops)
			}
			return
		}
		if f := fault.From(err); f != nil && f.Code != fault.CodeResting { // then its pools may want none
			l.queue.wait(p.taken, f.RetryAt, time.Time{})
		}
		if at, there := index[p.taken.pool]; there && l.isLevel(within, &p, b.Pools[at]) {
			l.ends(ctx, within, p, nil)
		} else {
			l.queue.differs(p.taken, p.ops)
		}
	}
}

// readAll reads the load balancer for several of its pools. Before a time that Azure names no row of
// overlapping writes begins: this read would have to end it.
func (l *lane) readAll(ctx context.Context) (lb.LoadBalancer, error) {
	within, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	b, err := l.cfg.Whole.GetLoadBalancer(within, l.id)
	if f := fault.From(err); f != nil {
		l.rowAfter = f.RetryAt
	}
	return b, err
}

// isLevel reports whether a pool that was read needs neither a write nor a record.
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

// differs gives back what a look has found not to be level, or could not tell: it is attempted as a
// change is.
func (q *queue) differs(t taken, ops []poolschedule.Operation) {
	for i := range ops {
		ops[i].Differs = true
	}
	q.mu.Lock()
	t.of.history.Unread = true // a look for drift has no operation that could say so
	q.mu.Unlock()
	q.back(t, ops)
}

// watch makes a pool one that is looked at. The caller holds q.mu.
func (q *queue) watch(key lb.PoolKey, w *waiting, now time.Time) {
	w.driftAt = w.history.LookAt(key, now, q.driftPeriod)
	q.nextDrift = poolschedule.Earlier(q.nextDrift, w.driftAt)
}

// look marks the pools whose moment has come. What has operations is read anyway. The
// cost grows with the lane's pools, and is paid once for each look. The caller holds q.mu.
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

// lookAtOthers has all pools looked at that a write of their load balancer was not made for.
// Azure took it, and if it failed in the end they are out of force as well, level or not.
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
