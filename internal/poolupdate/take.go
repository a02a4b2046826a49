// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/wholewrite"
)

// taken is one pool taken from the queue.
type taken struct {
	pool    lb.PoolKey
	of      *waiting // nil if the pool was forgotten
	ops     []poolschedule.Operation
	history poolschedule.History
	told    map[poolschedule.ServiceName]poolschedule.Word
	// driftDue is true if a check was due.
	driftDue bool
	// namespace is the one that used its turn, if any.
	namespace string
}

// take takes a pool's operations for an attempt.
func (q *queue) take(pool lb.PoolKey, now time.Time, interval time.Duration) taken {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return taken{}
	}
	g := q.groupAt(pool, w, now)
	member, admin := g.Due(now, interval)
	q.line.Took(g.Namespace)
	t := q.takeLocked(pool, w, now)
	if q.turn != nil && !g.Idle() {
		t.namespace = g.Namespace
		q.turn.Take(t.namespace)
	}
	for i := range t.ops {
		if t.ops[i].Admin {
			t.ops[i].Carried = member && !admin
		} else {
			t.ops[i].Carried = admin && !member
		}
	}
	return t
}

// takeLocked takes a pool that exists. The caller holds q.mu.
func (q *queue) takeLocked(pool lb.PoolKey, w *waiting, now time.Time) taken {
	t := taken{pool: pool, of: w, ops: w.ops, history: w.history, told: w.told.all(), driftDue: w.driftDue}
	if len(t.ops) == 0 && w.driftDue {
		t.ops = []poolschedule.Operation{w.subject.AsDrift(now)}
	}
	w.driftDue = false
	q.hold(pool, w, nil)
	w.woken = false
	w.inFlight, w.oldest, w.announced = true, poolschedule.Summarize(pool, t.ops, w.history).Oldest(), nil
	return t
}

// done ends an attempt: retries rank before newer operations. A pool forgotten since is ignored,
// even if it was added again.
func (q *queue) done(t taken, requeue []poolschedule.Operation, h poolschedule.History, level *uint64, notified map[poolschedule.Word][]poolschedule.ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.of
	if q.turn != nil && t.namespace != "" {
		q.turn.Settle(t.namespace)
	}
	if w == nil || q.pools[t.pool] != w {
		return
	}
	// A postponed check is not a waiting operation.
	w.driftDue = w.driftDue || slices.ContainsFunc(requeue, func(op poolschedule.Operation) bool { return op.Drift })
	requeue = slices.DeleteFunc(requeue, func(op poolschedule.Operation) bool { return op.Drift })
	w.remembers(h)
	q.hold(t.pool, w, poolschedule.Coalesce(requeue, w.ops...))
	w.inFlight, w.level = false, level
	q.watch(t.pool, w, time.Now())
	for _, notification := range []poolschedule.Word{poolschedule.WordUpdated, poolschedule.WordRetrying, poolschedule.WordFailed} {
		for _, s := range notified[notification] {
			w.told = w.told.with(s, notification)
		}
	}
}

// takeAlong takes a pool for another writer's update; false if nothing waits or Retry-After has not
// passed.
func (q *queue) takeAlong(pool lb.PoolKey, now time.Time) (taken, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.busy[pool]
	if w == nil || w.group(pool, q.company).Earliest().After(now) {
		return taken{}, false
	}
	return q.takeLocked(pool, w, now), true
}

// back requeues operations without an attempt, before newer ones.
func (q *queue) back(t taken, ops []poolschedule.Operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.of
	if q.pools[t.pool] != w {
		return
	}
	w.remembers(w.history)
	w.inFlight, w.driftDue = false, w.driftDue || t.driftDue
	ops = slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return op.Drift }) // a check is not a waiting operation
	for i := range ops {
		ops[i].Carried = false
	}
	q.hold(t.pool, w, poolschedule.Coalesce(ops, w.ops...))
	q.signal()
}

// suspect records that a write guarded by etag may still land, so that the pool's content is
// unknown.
func (q *queue) suspect(t taken, etag string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.Writes.Lost, t.of.history.Writes.OpenSince, t.of.level = etag, time.Time{}, nil
}

// part excludes the pool from batched updates if apart is true. owed is true if an uncounted write
// may have landed.
func (q *queue) part(t taken, apart, owed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.Apart, t.of.history.Owed = t.of.history.Apart || apart, t.of.history.Owed || owed
}

// wait delays a pool for a Retry-After, or for another client's write; zero is neither.
func (q *queue) wait(t taken, until, others time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.NotBefore, t.of.history.HoldUntil = poolschedule.Later(t.of.history.NotBefore, until), poolschedule.Later(t.of.history.HoldUntil, others)
}

func (q *queue) choose(now time.Time, pick func([]poolschedule.Group) []lb.PoolKey) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	groups := q.groups(now)
	for i, g := range groups {
		groups[i].Turn, groups[i].Later = q.line.Turn(g.Namespace), q.line.Later(g.Namespace)
	}
	return pick(groups)
}

// unrest returns why a trial must not run now, or "".
func (q *queue) unrest(now time.Time, c wholewrite.Change) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		g := w.group(key, q.company)
		if reason := g.Unrest(now, c); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *Config) relevant(ops []poolschedule.Operation) []poolschedule.Operation {
	return slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return !c.Cluster.Relevant(op) })
}

func (c *Config) needed(ops []poolschedule.Operation) bool {
	return slices.ContainsFunc(ops, c.Cluster.Relevant)
}
