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

// queue holds the operations and state of one load balancer's pools. Its lock is never held across
// a call.
type queue struct {
	driftPeriod time.Duration
	interval    time.Duration
	// holds sets how long changes of busy pools wait; nil is not at all.
	holds func(groups []*poolschedule.Group, now time.Time)
	// defers returns the deferrals of a namespace's newest changes, of due ones; nil is none.
	defers func(namespace string, due int, now time.Time) []pace.Deferral

	mu    sync.Mutex
	pools map[lb.PoolKey]*waiting
	// busy are the pools with operations: the others cost nothing.
	busy  map[lb.PoolKey]*waiting
	depth int
	line  turns.Line
	// turn is nil while another writer holds the worker.
	turn *poolschedule.Turn
	// nextDrift is the next resync of any pool; zero is never.
	nextDrift time.Time
	// company debounces checks.
	company poolschedule.Company
	// wake has capacity one.
	wake chan struct{}
}

type waiting struct {
	ops     []poolschedule.Operation
	history poolschedule.History
	// inFlight is true during an attempt.
	inFlight bool
	// oldest is the queue time of the oldest operation in flight.
	oldest time.Time
	// level is the fingerprint of the known membership, or nil.
	level *uint64
	// told is each Service's last notification.
	told lastWords
	// subject is the newest operation's target, used for resyncs.
	subject poolschedule.Subject
	// driftAt is the next resync; the other two fields are set once it is due.
	driftAt    time.Time
	driftDue   bool
	driftSince time.Time
	announced  *Waiting
	// woken records, during an attempt, a change or completed machines.
	woken bool
	// hurried is the last retry requested by the user.
	hurried time.Time
}

func newQueue(driftPeriod, interval time.Duration) *queue {
	return &queue{driftPeriod: driftPeriod, interval: interval, pools: map[lb.PoolKey]*waiting{}, busy: map[lb.PoolKey]*waiting{}, wake: make(chan struct{}, 1)}
}

// add queues operations and counts those not coalesced. sooner is true if a waiting pool became due
// earlier. The caller signals the worker.
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
		due, wasWaiting := q.dueAt(key, w, now)
		w.wakes()
		q.hold(key, w, poolschedule.Coalesce(w.ops, op))
		if wasWaiting {
			is, _ := q.dueAt(key, w, now)
			sooner = sooner || is.Before(due)
		}
	}
	return q.depth - before, sooner
}

// dueAt returns when a waiting pool is due. The caller holds q.mu.
func (q *queue) dueAt(key lb.PoolKey, w *waiting, now time.Time) (at time.Time, waits bool) {
	if len(w.ops) == 0 || w.inFlight {
		return at, false
	}
	return q.groupAt(key, w, now).ReadyAt(q.interval), true
}

// recalls restores the notifications of an earlier process.
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

// remove removes matching operations, parked ones included, and returns their number.
func (q *queue) remove(match func(poolschedule.Operation) bool) int {
	q.mu.Lock()
	before := q.depth
	for key, w := range q.busy {
		q.hold(key, w, slices.DeleteFunc(w.ops, match))
	}
	removed := before - q.depth
	q.mu.Unlock()
	q.signal()
	return removed
}

// afresh makes a BackendPool's operations due as if they had not failed, except for Retry-After;
// once per interval and pool, because tenants request it and admin states have no pace.
func afresh(q *queue, ref poolschedule.Ref, now time.Time) {
	q.mu.Lock()
	for _, w := range q.busy {
		matches := func(op poolschedule.Operation) bool { return op.Ref == ref }
		if !slices.ContainsFunc(w.ops, matches) || now.Before(w.hurried.Add(q.interval)) {
			continue
		}
		w.hurried, w.history.HoldUntil, w.history.Postponed = now, time.Time{}, 0
		for at, op := range w.ops {
			if matches(op) {
				w.ops[at] = op.Afresh()
			}
		}
	}
	q.mu.Unlock()
	q.signal()
}

// forget drops a pool, also during an attempt.
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

func waitingIn(q *queue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.busy)
}

// resume ends the waits for Weir's own dependencies.
func (q *queue) resume() {
	q.mu.Lock()
	for _, w := range q.busy {
		w.history.HoldUntil, w.history.Postponed = time.Time{}, 0
	}
	q.mu.Unlock()
	q.signal()
}

// next returns the pool to attempt, or when to call again.
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
	pick, ok, retryAt := poolschedule.Admit(groups, now, interval)
	if slices.ContainsFunc(groups, func(g poolschedule.Group) bool { return g.Paced(now, interval) || g.IsDeferred(now, interval) }) {
		retryAt = poolschedule.Earlier(retryAt, now.Add(paceAgain))
	}
	return pick, ok, poolschedule.Earlier(retryAt, drift)
}

// paceAgain is how often a pace is polled: quotas recover continuously.
const paceAgain = time.Second

func setTurn(q *queue, t *poolschedule.Turn) {
	q.mu.Lock()
	q.turn = t
	q.mu.Unlock()
}

// nextInTurn returns the pool to attempt in this turn, and counts the attempt.
func nextInTurn(q *queue, now time.Time, interval time.Duration) (lb.PoolKey, bool) {
	pool, ok, _ := q.next(now, interval)
	if ok {
		q.mu.Lock()
		q.turn.Next()
		q.mu.Unlock()
	}
	return pool, ok
}

// lineUp sets the groups' turns. The caller holds q.mu.
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

// groups returns the waiting pools. The caller holds q.mu.
func (q *queue) groups(now time.Time) []poolschedule.Group {
	groups := make([]poolschedule.Group, 0, len(q.busy))
	for key, w := range q.busy {
		groups = append(groups, w.group(key, q.company))
	}
	q.space(groups, now)
	return groups
}

// space sets the groups' pace. The caller holds q.mu.
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
	for namespace, deferrable := range due {
		deferrals := q.defers(namespace, len(deferrable), now)
		if len(deferrals) == 0 {
			continue
		}
		slices.SortFunc(deferrable, func(a, b *poolschedule.Group) int {
			return cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.Pool(), b.Pool()))
		})
		for i, d := range deferrals {
			g := deferrable[len(deferrable)-len(deferrals)+i]
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

func (w *waiting) group(key lb.PoolKey, c poolschedule.Company) poolschedule.Group {
	g := poolschedule.Summarize(key, w.ops, w.history)
	if len(w.ops) == 0 {
		g = poolschedule.LookAt(key, w.subject.Ref.Namespace, w.driftSince, w.history)
	}
	g.Company = c.Until()
	return g
}

// levelAs is the exported method for one queue.
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
