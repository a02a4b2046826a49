// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// queue holds the operations of one load balancer, grouped by pool, and what the
// lane remembers of each pool. Its lock is never held across a call.
type queue struct {
	driftPeriod time.Duration

	mu    sync.Mutex
	pools map[lb.PoolKey]*waiting
	// busy are those of the pools that have operations: an event costs nothing for
	// the others.
	busy  map[lb.PoolKey]*waiting
	depth int
	// nextDrift is when the first of the pools is looked at for drift; zero is never.
	nextDrift time.Time
	// wake has room for one token: operations came, or left.
	wake chan struct{}
}

// waiting is one pool's part of the queue.
type waiting struct {
	ops     []Operation
	history history
	// inFlight is true from take until done; oldest is then when the oldest of what
	// was taken had been queued.
	inFlight bool
	oldest   time.Time
	// level is the fingerprint of the membership that the pool was last known to
	// hold; nil if not known.
	level *uint64
	// told is the last word that each Service got about this pool.
	told map[ServiceName]word
	// subject is the newest operation, without its counters: what drift looks after.
	subject Operation
	// driftAt is when to look next, and driftDue is true once that has come.
	driftAt  time.Time
	driftDue bool
	// announced is until when people were told that the pool waits, or without an end
	// that they know of: for what; zero and empty if not.
	announced    time.Time
	announcedFor string
}

func newQueue(driftPeriod time.Duration) *queue {
	return &queue{driftPeriod: driftPeriod, pools: map[lb.PoolKey]*waiting{}, busy: map[lb.PoolKey]*waiting{}, wake: make(chan struct{}, 1)}
}

// add queues an operation, or lets a queued one that says the same stand for it; it
// reports which.
func (q *queue) add(op Operation, now time.Time) (queued bool) {
	op.queuedAt = now
	key := op.Pool.Key()
	q.mu.Lock()
	w := q.pools[key]
	if w == nil {
		w = &waiting{told: map[ServiceName]word{}}
		q.pools[key] = w
		q.watch(key, w, now)
	}
	w.subject = op
	before := q.depth
	q.hold(key, w, coalesce(w.ops, op))
	queued = q.depth > before
	q.mu.Unlock()
	if queued {
		q.signal()
	}
	return queued
}

// hold replaces a pool's operations. The caller holds q.mu.
func (q *queue) hold(key lb.PoolKey, w *waiting, ops []Operation) {
	q.depth += len(ops) - len(w.ops)
	w.ops = ops
	if len(ops) > 0 || w.driftDue {
		q.busy[key] = w
	} else {
		delete(q.busy, key)
	}
}

// remove takes out every waiting operation, parked ones too, for which match
// holds, and returns how many there were.
func (q *queue) remove(match func(Operation) bool) int {
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

// forget drops a pool with its history, and reports whether it was the last. An
// attempt under way finds nothing to come back to, and its operations are dropped.
func (q *queue) forget(pool lb.PoolKey) (last bool) {
	q.mu.Lock()
	if w := q.pools[pool]; w != nil {
		w.driftDue = false
		q.hold(pool, w, nil)
		delete(q.pools, pool)
	}
	last = len(q.pools) == 0
	q.mu.Unlock()
	q.signal()
	return last
}

// next asks admission which pool to attempt now, or when to ask again.
func (q *queue) next(now time.Time, interval time.Duration) (lb.PoolKey, bool, time.Time) {
	q.mu.Lock()
	q.look(now)
	groups := make([]group, 0, len(q.busy))
	for key, w := range q.busy {
		groups = append(groups, summarize(key, w.ops, w.history))
	}
	drift := q.nextDrift
	q.mu.Unlock()
	pick, ok, askAt := admit(groups, now, interval)
	return pick, ok, earlier(askAt, drift)
}

// worthTelling is the shortest wait that people hear of.
const worthTelling = time.Second

// news returns the pools that wait for their pace, for a gate or for the lease, and of
// which nobody was told yet, or of a much earlier time. What waits after a failure was
// told by the report of that attempt.
func (q *queue) news(met obstacle, now time.Time, interval time.Duration) []Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Waiting
	for key, w := range q.busy {
		if len(w.ops) == 0 {
			continue // a look for drift is no change
		}
		g := summarize(key, w.ops, w.history)
		until, why := g.readyAt(now, interval), ""
		if met.until.IsZero() && met.why != "" && until.Sub(now) < worthTelling {
			if w.announcedFor != met.why {
				w.announced, w.announcedFor = time.Time{}, met.why
				all = append(all, Waiting{Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Gate: met.why})
			}
			continue
		}
		if met.until.After(until) {
			until, why = met.until, met.why
		} else if !g.paced(now, interval) {
			continue
		}
		moved := until.Sub(w.announced)
		if until.Sub(now) < worthTelling || moved < worthTelling || why == "" && !w.announced.IsZero() && moved < interval {
			continue
		}
		w.announced, w.announcedFor = until, ""
		all = append(all, Waiting{Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Until: until, Gate: why})
	}
	slices.SortFunc(all, func(a, b Waiting) int { return cmp.Compare(a.Pool.Key(), b.Pool.Key()) })
	return all
}

// take moves a pool's operations out of the queue for an attempt.
func (q *queue) take(pool lb.PoolKey, now time.Time) (ops []Operation, h history, told map[ServiceName]word) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return nil, history{}, nil
	}
	ops = w.ops
	if len(ops) == 0 && w.driftDue {
		ops = []Operation{w.subject.asDrift(now)}
	}
	w.driftDue = false
	q.hold(pool, w, nil)
	w.inFlight, w.oldest, w.announced = true, summarize(pool, ops, w.history).firstQueued, time.Time{}
	w.announcedFor = ""
	return ops, w.history, w.told
}

// done ends an attempt: what is to be tried again comes back, ahead of what came
// meanwhile, and the pool's history and level are replaced.
func (q *queue) done(pool lb.PoolKey, requeue []Operation, h history, level *uint64, told map[word][]ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return
	}
	// A look that was postponed is not an operation that waits.
	w.driftDue = w.driftDue || slices.ContainsFunc(requeue, func(op Operation) bool { return op.drift })
	requeue = slices.DeleteFunc(requeue, func(op Operation) bool { return op.drift })
	q.hold(pool, w, coalesce(requeue, w.ops...))
	w.history, w.inFlight, w.level = h, false, level
	for _, said := range []word{wordUpdated, wordRetrying, wordFailed} {
		for _, s := range told[said] {
			w.told[s] = said
		}
	}
}

// levelAs reports whether the pool is known to hold the membership of this
// fingerprint, with nothing queued or under way that could change it.
func (q *queue) levelAs(pool lb.PoolKey, fingerprint uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	return w != nil && !w.inFlight && len(w.ops) == 0 && w.level != nil && *w.level == fingerprint
}

// coalesce appends newer operations to older ones, except those that an older one
// stands for already.
func coalesce(older []Operation, newer ...Operation) []Operation {
	for _, op := range newer {
		if !slices.ContainsFunc(older, func(o Operation) bool { return o.covers(op) }) {
			older = append(older, op)
		}
	}
	return older
}

// backlog adds what waits here to b. Parked means by a Retry-After that is not over.
func (q *queue) backlog(b Backlog, now time.Time) Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.Operations += q.depth
	for _, w := range q.pools {
		oldest := time.Time{}
		if w.inFlight {
			oldest = w.oldest
		}
		if g := summarize("", w.ops, w.history); len(w.ops) > 0 {
			oldest = earlier(oldest, g.firstQueued)
			if g.parkedUntil.After(now) {
				b.Parked++
			}
		}
		b.Oldest = earlier(b.Oldest, oldest)
	}
	return b
}

// earlier returns the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// release takes out parked operations that have nobody left to serve, so that they do
// not hold back others of their pool. relevant is asked without the queue's lock.
func (q *queue) release(relevant func(Operation) bool) {
	var gone []Operation
	for _, op := range q.parked() {
		if !relevant(op) {
			gone = append(gone, op)
		}
	}
	if len(gone) > 0 {
		q.remove(func(op Operation) bool { return slices.Contains(gone, op) })
	}
}

func (q *queue) parked() []Operation {
	q.mu.Lock()
	defer q.mu.Unlock()
	var parked []Operation
	for _, w := range q.busy {
		for _, op := range w.ops {
			if !op.nextEligibleAt.IsZero() {
				parked = append(parked, op)
			}
		}
	}
	return parked
}
