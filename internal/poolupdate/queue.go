// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// queue holds the operations of one load balancer, grouped by pool, and what the
// lane remembers of each pool. Its lock is never held across a call.
type queue struct {
	mu    sync.Mutex
	pools map[lb.PoolKey]*waiting
	depth int
	// wake has room for one token: operations came, or left.
	wake chan struct{}
}

// waiting is one pool's part of the queue.
type waiting struct {
	ops     []Operation
	history history
	// inFlight is true from take until done.
	inFlight bool
	// level is the fingerprint of the membership that the pool was last known to
	// hold; nil if not known.
	level *uint64
	// told is the last word that each Service got about this pool.
	told map[ServiceName]word
}

func newQueue() *queue {
	return &queue{pools: map[lb.PoolKey]*waiting{}, wake: make(chan struct{}, 1)}
}

// add queues an operation, or lets a queued one that says the same stand for it.
func (q *queue) add(op Operation, now time.Time) {
	op.queuedAt = now
	key := op.Pool.Key()
	q.mu.Lock()
	w := q.pools[key]
	if w == nil {
		w = &waiting{told: map[ServiceName]word{}}
		q.pools[key] = w
	}
	before := len(w.ops)
	w.ops = coalesce(w.ops, op)
	q.depth += len(w.ops) - before
	q.mu.Unlock()
	q.signal()
}

// remove takes out every waiting operation, parked ones too, for which match
// holds, and returns how many there were.
func (q *queue) remove(match func(Operation) bool) int {
	q.mu.Lock()
	before := q.depth
	for _, w := range q.pools {
		n := len(w.ops)
		w.ops = slices.DeleteFunc(w.ops, match)
		q.depth -= n - len(w.ops)
	}
	removed := before - q.depth
	q.mu.Unlock()
	q.signal()
	return removed
}

// forget drops a pool with its history, and reports whether it was the last. An
// attempt under way finds nothing to come back to, and its operations are dropped.
func (q *queue) forget(pool lb.PoolKey) (last bool) {
	q.mu.Lock()
	if w := q.pools[pool]; w != nil {
		q.depth -= len(w.ops)
		delete(q.pools, pool)
	}
	last = len(q.pools) == 0
	q.mu.Unlock()
	q.signal()
	return last
}

// next asks admission which pool to attempt now, or when to ask again.
func (q *queue) next(gate, now time.Time, interval time.Duration) (lb.PoolKey, bool, time.Time) {
	q.mu.Lock()
	groups := make([]group, 0, len(q.pools))
	for key, w := range q.pools {
		if len(w.ops) > 0 {
			groups = append(groups, summarize(key, w.ops, w.history))
		}
	}
	q.mu.Unlock()
	return admit(groups, gate, now, interval)
}

// take moves a pool's operations out of the queue for an attempt.
func (q *queue) take(pool lb.PoolKey) (ops []Operation, h history, told map[ServiceName]word) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return nil, history{}, nil
	}
	ops, w.ops = w.ops, nil
	q.depth -= len(ops)
	w.inFlight = true
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
	before := len(w.ops)
	w.ops = coalesce(requeue, w.ops...)
	q.depth += len(w.ops) - before
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

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.depth
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
