// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/turns"
)

// queue holds the operations of one load balancer, grouped by pool, and the worker's state of each
// pool. Its lock is never held across a call.
type queue struct {
	driftPeriod time.Duration
	interval    time.Duration
	// holds sets how long the changes of busy pools wait for further ones; nil is not at all.
	holds func(groups []*poolschedule.Group, now time.Time)
	// defers returns the deferrals of the newest of due changes in a namespace; nil is none.
	defers func(namespace string, due int, now time.Time) []pace.Deferral

	mu    sync.Mutex
	pools map[lb.PoolKey]*waiting
	// busy are the pools with operations, so that an event costs nothing for the others.
	busy  map[lb.PoolKey]*waiting
	depth int
	// line orders the namespaces with waiting operations.
	line turns.Line
	// turn is what remains until the next load balancer write; nil while the worker is held by
	// another writer.
	turn *poolschedule.Turn
	// nextDrift is the first due drift check; zero is never.
	nextDrift time.Time
	// company batches the operations that nothing waits for.
	company poolschedule.Company
	// wake has capacity one: operations were added or removed.
	wake chan struct{}
}

// waiting is the queue's state of one pool.
type waiting struct {
	ops     []poolschedule.Operation
	history poolschedule.History
	// inFlight is true from take until done; oldest is then when the oldest taken operation was
	// queued.
	inFlight bool
	oldest   time.Time
	// level is the fingerprint of the membership that the pool is known to hold; nil if unknown.
	level *uint64
	// told is the last notification of each Service about this pool.
	told lastWords
	// subject is the target of the newest operation, which drift checks use.
	subject poolschedule.Subject
	// driftAt is the next drift check; driftDue and driftSince are set once it is due.
	driftAt  time.Time
	driftDue bool
	driftSince time.Time
	// announced is the last reported wait; nil if none.
	announced *Waiting
	// woken is true if machines completed or a change came during an attempt.
	woken bool
	// hurried is when the user last requested a retry.
	hurried time.Time
}

func newQueue(driftPeriod, interval time.Duration) *queue {
	return &queue{driftPeriod: driftPeriod, interval: interval, pools: map[lb.PoolKey]*waiting{}, busy: map[lb.PoolKey]*waiting{}, wake: make(chan struct{}, 1)}
}

// add queues operations, coalesces equal ones and counts those added. sooner is true if a waiting
// pool became due earlier. The worker sees all of them or none; the caller signals it.
func (q *queue) add(now time.Time, ops ...poolschedule.Operation) (queued int, sooner bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.depth
	for _, op := range ops {
		op.QueuedAt = now
		key := op.Pool.Key()
		w, known := q.pools[key]
		if !known {
			w = &waiting{}
			q.pools[key] = w
			q.watch(key, w, now)
		}
		w.recalls(op, !known)
		if !op.Admin || w.subject.Ref != op.Ref {
			w.subject = op.Subject()
		}
		w.history.NotBefore = poolschedule.Later(w.history.NotBefore, op.NotBefore)
		if op.Looks() && !op.Differs && !op.Admin {
			q.company.Joins(now)
		}
		due, stood := q.dueAt(key, w, now)
		w.wakes()
		q.hold(key, w, poolschedule.Coalesce(w.ops, op))
		if stood {
			is, _ := q.dueAt(key, w, now)
			sooner = sooner || is.Before(due)
		}
	}
	return q.depth - before, sooner
}

// dueAt returns when a pool is due, if it has operations and is not in flight. The caller holds
// q.mu.
func (q *queue) dueAt(key lb.PoolKey, w *waiting, now time.Time) (at time.Time, waits bool) {
	if len(w.ops) == 0 || w.inFlight {
		return at, false
	}
	return q.groupAt(key, w, now).ReadyAt(q.interval), true
}

// recalls restores the state that an earlier process persisted, so that notifications are not
// repeated.
func (w *waiting) recalls(op poolschedule.Operation, isNew bool) {
	if isNew {
		w.history.GaveUp = op.Told.GivenUpFor
	}
	if w.told.has(op.Service) || !op.Told.Failure {
		return
	}
	word := poolschedule.WordRetrying
	if op.Told.GivenUpFor != "" {
		word = poolschedule.WordFailed
	}
	w.told = w.told.with(op.Service, word)
}

// hold replaces a pool's operations. The caller holds q.mu.
func (q *queue) hold(key lb.PoolKey, w *waiting, ops []poolschedule.Operation) {
	q.depth += len(ops) - len(w.ops)
	w.ops = ops
	if len(ops) > 0 || w.driftDue {
		q.busy[key] = w
	} else {
		delete(q.busy, key)
	}
	if len(ops) == 0 {
		w.announced = nil // later operations are reported again
	}
}

// remove removes all waiting operations that match, parked ones included, and returns their number.
func (q *queue) remove(match func(poolschedule.Operation) bool) int {
	q.mu.Lock()
	before := q.depth
	for key, w := range q.busy {
		q.hold(key, w, slices.DeleteFunc(w.ops, match))
	}
	gone := before - q.depth
	q.mu.Unlock()
	q.signal()
	return gone
}

// afresh makes a BackendPool's waiting operations due as if they had not failed, but not before
// Retry-After. It is limited to once per interval and pool, because tenants can request it and
// admin states have no pace.
func afresh(q *queue, ref poolschedule.Ref, now time.Time) {
	q.mu.Lock()
	for _, w := range q.busy {
		asked := func(op poolschedule.Operation) bool { return op.Ref == ref }
		if !slices.ContainsFunc(w.ops, asked) || now.Before(w.hurried.Add(q.interval)) {
			continue
		}
		w.hurried, w.history.HoldUntil, w.history.Postponed = now, time.Time{}, 0
		for at, op := range w.ops {
			if asked(op) {
				w.ops[at] = op.Afresh()
			}
		}
	}
	q.mu.Unlock()
	q.signal()
}

// forget drops a pool with its history. Operations of a running attempt are dropped at its end.
func (q *queue) forget(pool lb.PoolKey) {
	q.mu.Lock()
	if w := q.pools[pool]; w != nil {
		w.driftDue = false
		q.hold(pool, w, nil)
		delete(q.pools, pool)
	}
	q.mu.Unlock()
	q.signal()
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pools) == 0
}

// waitingIn returns the number of pools with waiting operations.
func waitingIn(q *queue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.busy)
}

// resume releases pools held for Weir's own dependencies.
func (q *queue) resume() {
	q.mu.Lock()
	for _, w := range q.busy {
		w.history.HoldUntil, w.history.Postponed = time.Time{}, 0
	}
	q.mu.Unlock()
	q.signal()
}

// next returns the pool to attempt now, or when to ask again.
func (q *queue) next(now time.Time, interval time.Duration) (lb.PoolKey, bool, time.Time) {
	q.mu.Lock()
	q.look(now)
	groups := q.groups(now)
	q.lineUp(groups, now)
	drift := q.nextDrift
	if q.turn != nil {
		groups = q.turn.Left(groups, now, interval)
	}
	q.mu.Unlock()
	pick, ok, askAt := poolschedule.Admit(groups, now, interval)
	if slices.ContainsFunc(groups, func(g poolschedule.Group) bool { return g.Paced(now, interval) || g.IsDeferred(now, interval) }) {
		askAt = poolschedule.Earlier(askAt, now.Add(paceAgain))
	}
	return pick, ok, poolschedule.Earlier(askAt, drift)
}

// paceAgain is the polling interval of a pool that waits for its pace, because quotas recover
// continuously.
const paceAgain = time.Second

// setTurn begins a turn of the worker; nil ends it.
func setTurn(q *queue, t *poolschedule.Turn) {
	q.mu.Lock()
	q.turn = t
	q.mu.Unlock()
}

// nextInTurn is next within the turn; it counts the attempt if there is a pool.
func nextInTurn(q *queue, now time.Time, interval time.Duration) (lb.PoolKey, bool) {
	pool, ok, _ := q.next(now, interval)
	if ok {
		q.mu.Lock()
		q.turn.Next()
		q.mu.Unlock()
	}
	return pool, ok
}

// lineUp sets the turns of the groups' namespaces. The caller holds q.mu.
func (q *queue) lineUp(groups []poolschedule.Group, now time.Time) {
	waiting := map[string]bool{}
	for _, g := range groups {
		waiting[g.Namespace] = true
	}
	q.line.Stand(slices.Sorted(maps.Keys(waiting)))
	q.line.Round(poolschedule.Ready(groups, now, q.interval))
	for i, g := range groups {
		groups[i].Turn, groups[i].Later = q.line.Turn(g.Namespace), q.line.Later(g.Namespace)
	}
}

// groups returns a group per pool with waiting operations. The caller holds q.mu.
func (q *queue) groups(now time.Time) []poolschedule.Group {
	groups := make([]poolschedule.Group, 0, len(q.busy))
	for key, w := range q.busy {
		groups = append(groups, w.group(key, q.company))
	}
	q.space(groups, now)
	return groups
}

// space sets the pace of the groups; most have none. The caller holds q.mu.
func (q *queue) space(groups []poolschedule.Group, now time.Time) {
	var contend []*poolschedule.Group
	for i, g := range groups {
		if g.Contends(now, q.interval) {
			contend = append(contend, &groups[i])
		}
	}
	if q.holds != nil && len(contend) > 0 {
		q.holds(contend, now)
	}
	deferGroups(q, groups, now)
}

// deferGroups defers a namespace's newest changes beyond its share. The caller holds q.mu.
func deferGroups(q *queue, groups []poolschedule.Group, now time.Time) {
	if q.defers == nil {
		return
	}
	due := map[string][]*poolschedule.Group{}
	for i, g := range groups {
		if g.NeedsShare(now, q.interval) {
			due[g.Namespace] = append(due[g.Namespace], &groups[i])
		}
	}
	for namespace, of := range due {
		deferrals := q.defers(namespace, len(of), now)
		if len(deferrals) == 0 {
			continue
		}
		slices.SortFunc(of, func(a, b *poolschedule.Group) int {
			return cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.Pool(), b.Pool()))
		})
		for i, d := range deferrals {
			g := of[len(of)-len(deferrals)+i]
			g.Deferred, g.Why = d.Until, d.String()
		}
	}
}

// groupAt returns a pool's group with its pace. The caller holds q.mu.
func (q *queue) groupAt(key lb.PoolKey, w *waiting, now time.Time) poolschedule.Group {
	one := []poolschedule.Group{w.group(key, q.company)}
	q.space(one, now)
	return one[0]
}

// group returns the pool as admission sees it, with the debouncing c of its worker.
func (w *waiting) group(key lb.PoolKey, c poolschedule.Company) poolschedule.Group {
	g := poolschedule.Summarize(key, w.ops, w.history)
	if len(w.ops) == 0 {
		g = poolschedule.LookAt(key, w.subject.Ref.Namespace, w.driftSince, w.history)
	}
	g.Company = c.Until()
	return g
}

// levelAs reports whether the pool is known to hold the membership with this fingerprint and
// nothing pending could change it.
func (q *queue) levelAs(pool lb.PoolKey, fingerprint uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	return w != nil && !w.inFlight && len(w.ops) == 0 && w.level != nil && *w.level == fingerprint
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
