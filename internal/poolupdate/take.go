// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/wholewrite"
)

// taken is what an attempt works with.
type taken struct {
	pool    lb.PoolKey
	of      *waiting // whom it was taken from; nil if the pool was forgotten
	ops     []poolschedule.Operation
	history poolschedule.History
	told    map[poolschedule.ServiceName]poolschedule.Word
	// driftDue is true if the pool was due to be looked at.
	driftDue bool
	// namespace is that whose turn it was; empty for a look, and for what another writer carries.
	namespace string
}

// take moves a pool's operations out of the queue for an attempt.
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

// takeLocked is take for a pool that is there. The caller holds q.mu.
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

// done ends an attempt: what is to be tried again comes back, ahead of what came
// meanwhile, and the pool's history and level are replaced. A pool that was forgotten
// meanwhile is left alone, also if it came back.
func (q *queue) done(t taken, requeue []poolschedule.Operation, h poolschedule.History, level *uint64, told map[poolschedule.Word][]poolschedule.ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.of
	if q.turn != nil && t.namespace != "" {
		q.turn.Settle(t.namespace)
	}
	if w == nil || q.pools[t.pool] != w {
		return
	}
	// A look that was postponed is not an operation that waits.
	w.driftDue = w.driftDue || slices.ContainsFunc(requeue, func(op poolschedule.Operation) bool { return op.Drift })
	requeue = slices.DeleteFunc(requeue, func(op poolschedule.Operation) bool { return op.Drift })
	w.remembers(h)
	q.hold(t.pool, w, poolschedule.Coalesce(requeue, w.ops...))
	w.inFlight, w.level = false, level
	q.watch(t.pool, w, time.Now())
	for _, said := range []poolschedule.Word{poolschedule.WordUpdated, poolschedule.WordRetrying, poolschedule.WordFailed} {
		for _, s := range told[said] {
			w.told = w.told.with(s, said)
		}
	}
}

// takeAlong is take for a pool that is not attempted for its own sake, unless nothing waits
// for it, or Azure wants no call for it yet.
func (q *queue) takeAlong(pool lb.PoolKey, now time.Time) (taken, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.busy[pool]
	if w == nil || w.group(pool, q.company).Earliest().After(now) {
		return taken{}, false
	}
	return q.takeLocked(pool, w, now), true
}

// back ends an attempt that was none: the operations stand where they stood, ahead of what
// came meanwhile.
func (q *queue) back(t taken, ops []poolschedule.Operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.of
	if q.pools[t.pool] != w {
		return
	}
	w.remembers(w.history)
	w.inFlight, w.driftDue = false, w.driftDue || t.driftDue
	ops = slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return op.Drift }) // a look is no operation that waits
	for i := range ops {
		ops[i].Carried = false
	}
	q.hold(t.pool, w, poolschedule.Coalesce(ops, w.ops...))
	q.signal()
}

// suspect notes that a write guarded by an etag may land yet. What the pool holds is not
// known until then.
func (q *queue) suspect(t taken, etag string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.Writes.Lost, t.of.history.Writes.OpenSince, t.of.level = etag, time.Time{}, nil
}

// part has a pool have no part in writes of several if apart is true. owed is true if the last one may
// have landed, and was nobody's attempt.
func (q *queue) part(t taken, apart, owed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.Apart, t.of.history.Owed = t.of.history.Apart || apart, t.of.history.Owed || owed
}

// wait has a pool wait for a time that Azure has named, or until somebody else's write may have ended;
// zero is neither.
func (q *queue) wait(t taken, until, others time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.NotBefore, t.of.history.HoldUntil = poolschedule.Later(t.of.history.NotBefore, until), poolschedule.Later(t.of.history.HoldUntil, others)
}

// choose has some of the pools be chosen that have something waiting, by the turns of their namespaces.
func (q *queue) choose(now time.Time, pick func([]poolschedule.Group) []lb.PoolKey) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	groups := q.groups(now)
	for i, g := range groups {
		groups[i].Turn, groups[i].Later = q.line.Turn(g.Namespace), q.line.Later(g.Namespace)
	}
	return pick(groups)
}

// unrest says, for people, why now is no moment to try something on the load balancer; empty if
// it is one. Admin states can be tried where nodes only return: nobody loses a flow by a write
// that is ignored.
func (q *queue) unrest(now time.Time, c wholewrite.Change) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		g := w.group(key, q.company)
		if why := g.Unrest(now, c); why != "" {
			return why
		}
	}
	return ""
}

// relevant drops the operations that have nobody left to serve.
func (c *Config) relevant(ops []poolschedule.Operation) []poolschedule.Operation {
	return slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return !c.Cluster.Relevant(op) })
}

// needed reports whether operations still have anyone to serve.
func (c *Config) needed(ops []poolschedule.Operation) bool {
	return slices.ContainsFunc(ops, c.Cluster.Relevant)
}
