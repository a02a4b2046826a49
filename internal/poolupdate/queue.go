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

// queue holds the operations of one load balancer, grouped by pool, and what the
// lane remembers of each pool. Its lock is never held across a call.
type queue struct {
	driftPeriod time.Duration
	interval    time.Duration
	// holds says of some pools that keep changing how long their changes wait for others; nil is at once.
	holds func(groups []*poolschedule.Group, now time.Time)
	// defers returns the deferrals of the last ones of so many changes that are due in a namespace; nil is none.
	defers func(namespace string, due int, now time.Time) []pace.Deferral

	mu    sync.Mutex
	pools map[lb.PoolKey]*waiting
	// busy are those of the pools that have operations: an event costs nothing for
	// the others.
	busy  map[lb.PoolKey]*waiting
	depth int
	// line says whose turn it is of the namespaces that have something waiting.
	line turns.Line
	// turn is what is left until the next write of the load balancer; nil while another holds the lane.
	turn *poolschedule.Turn
	// nextDrift is when the first of the pools is looked at for drift; zero is never.
	nextDrift time.Time
	// company is of the operations that nobody waits for.
	company poolschedule.Company
	// wake has room for one token: operations came, or left.
	wake chan struct{}
}

// waiting is one pool's part of the queue.
type waiting struct {
	ops     []poolschedule.Operation
	history poolschedule.History
	// inFlight is true from take until done; oldest is then when the oldest of what
	// was taken had been queued.
	inFlight bool
	oldest   time.Time
	// level is the fingerprint of the membership that the pool was last known to
	// hold; nil if not known.
	level *uint64
	// told is the last word that each Service got about this pool.
	told lastWords
	// subject is whom the newest operation was for: what drift looks after.
	subject poolschedule.Subject
	// driftAt is when to look next, and driftDue is true once that has come.
	driftAt  time.Time
	driftDue bool
	// driftSince is when it came.
	driftSince time.Time
	// announced is what people were told that the pool waits for; nil if nothing.
	announced *Waiting
	// woken is true if during an attempt its machines were done, or a change came.
	woken bool
	// hurried is when people had it tried again last.
	hurried time.Time
}

func newQueue(driftPeriod, interval time.Duration) *queue {
	return &queue{driftPeriod: driftPeriod, interval: interval, pools: map[lb.PoolKey]*waiting{}, busy: map[lb.PoolKey]*waiting{}, wake: make(chan struct{}, 1)}
}

// add queues operations, or lets a queued one that says the same stand for one of them; it
// counts the first. sooner is true if one has that stands be due earlier. A lane sees all of them or
// none, and is signalled by whoever adds.
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

// dueAt returns when a pool is due, if something waits for it and is not in flight. The caller holds q.mu.
func (q *queue) dueAt(key lb.PoolKey, w *waiting, now time.Time) (at time.Time, waits bool) {
	if len(w.ops) == 0 || w.inFlight {
		return at, false
	}
	return q.groupAt(key, w, now).ReadyAt(q.interval), true
}

// recalls has a pool that the lane does not know yet begin where an earlier process has
// ended: what was said by that one is not said again.
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
		w.announced = nil // what comes next waits for itself
	}
}

// remove takes out every waiting operation, parked ones too, for which match
// holds, and returns how many there were.
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

// afresh has what waits for a BackendPool be due as if it had not failed yet, but not before what Azure has
// asked for. Once an interval a pool is heard: a tenant asks, and admin states have no pace.
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

// forget drops a pool with its history. An attempt under way finds nothing to come back
// to, and its operations are dropped.
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

// waitingIn counts the pools of a queue that have something waiting.
func waitingIn(q *queue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.busy)
}

// resume lets go what is held because something of our own was not ready.
func (q *queue) resume() {
	q.mu.Lock()
	for _, w := range q.busy {
		w.history.HoldUntil, w.history.Postponed = time.Time{}, 0
	}
	q.mu.Unlock()
	q.signal()
}

// next asks admission which pool to attempt now, or when to ask again.
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

// paceAgain is how soon the pace is asked for again that a pool waits for: what is left comes back.
const paceAgain = time.Second

// setTurn begins a turn of the lane, or ends it if it is nil.
func setTurn(q *queue, t *poolschedule.Turn) {
	q.mu.Lock()
	q.turn = t
	q.mu.Unlock()
}

// nextInTurn is next within the turn, of which an attempt begins if there is a pool.
func nextInTurn(q *queue, now time.Time, interval time.Duration) (lb.PoolKey, bool) {
	pool, ok, _ := q.next(now, interval)
	if ok {
		q.mu.Lock()
		q.turn.Next()
		q.mu.Unlock()
	}
	return pool, ok
}

// lineUp gives the groups the turns of their namespaces. The caller holds q.mu.
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

// groups are those of all pools that have something waiting. The caller holds q.mu.
func (q *queue) groups(now time.Time) []poolschedule.Group {
	groups := make([]poolschedule.Group, 0, len(q.busy))
	for key, w := range q.busy {
		groups = append(groups, w.group(key, q.company))
	}
	q.space(groups, now)
	return groups
}

// space gives the groups their pace. Most of them have none to keep. The caller holds q.mu.
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

// deferGroups defers the changes beyond the share of their namespace: those that were queued last. The caller holds q.mu.
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

// groupAt is a pool's group with its pace. The caller holds q.mu.
func (q *queue) groupAt(key lb.PoolKey, w *waiting, now time.Time) poolschedule.Group {
	one := []poolschedule.Group{w.group(key, q.company)}
	q.space(one, now)
	return one[0]
}

// group is the pool as admission looks at it, in the company of others of its lane.
func (w *waiting) group(key lb.PoolKey, c poolschedule.Company) poolschedule.Group {
	g := poolschedule.Summarize(key, w.ops, w.history)
	if len(w.ops) == 0 {
		g = poolschedule.LookAt(key, w.subject.Ref.Namespace, w.driftSince, w.history)
	}
	g.Company = c.Until()
	return g
}

// levelAs reports whether the pool is known to hold the membership of this
// fingerprint, with nothing queued or under way that could change it.
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
