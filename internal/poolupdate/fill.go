// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// brings reports whether a write of the whole load balancer is known to give a pool what it carries
// for it: by the file of the operator, or by what such writes were seen to do. What is not known is
// not counted on: Azure has been seen to answer success, to leave pools that are there as they are,
// and to make new ones empty. Where it ignores admin states it is left alone altogether.
func (l *lane) brings(p lb.Pool) bool {
	if p.Etag == "" {
		return l.cfg.Behaviour.WholeWriteNewPools == behaviour.Filled
	}
	return l.answer(wholewrite.Addresses) == behaviour.Taken && l.answer(wholewrite.AdminStates) != behaviour.Ignored
}

// bringsStates is brings for a change of admin states, if it is one.
func (l *lane) bringsStates(todo poolwrite.Change) bool {
	_, states := todo.Changes()
	return !states || l.answer(wholewrite.AdminStates) == behaviour.Taken
}

func (l *lane) answer(c wholewrite.Change) behaviour.Answer {
	return l.verdicts.Answer(l.id.SubscriptionID, c, time.Now())
}

// empty returns a pool that is to be made as the write of its load balancer has to make it:
// without the addresses that the lane puts there afterwards.
func empty(p lb.Pool) lb.Pool {
	p.Addresses = nil
	return p
}

// fill has pools filled at once that a write of their load balancer has made this moment, and
// that somebody keeps. One that was level before it went is empty now, and nothing else says
// so. A pool without a BackendPool is filled by the first operation that comes for it.
func (q *queue) fill(made []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range made {
		if w := q.pools[key]; w != nil {
			w.level = nil
			q.refill(key, w, now)
		}
	}
}

// fillFound has a pool filled that was found empty, and for which nothing waits, though it was
// not there when it was looked at last: a write made it whose answer was lost.
func (q *queue) fillFound(found lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.pools[found]; w != nil && w.level == nil && len(w.ops) == 0 && !w.inFlight {
		q.refill(found, w, now)
	}
}

// fillUnknown is fill after a write whose fate is unknown. What is known to be missing stays
// with whoever looks after that: he finds out when it is there.
func (q *queue) fillUnknown(made []lb.PoolKey, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range made {
		if w := q.pools[key]; w != nil && w.level != nil {
			w.level = nil
			q.refill(key, w, now)
		}
	}
	q.signal()
}

func (q *queue) refill(key lb.PoolKey, w *waiting, now time.Time) {
	q.hold(key, w, coalesce(w.ops, w.subject.asFill(now)))
}

// asFill returns the operation that fills the pool, which has lost its members, on behalf of
// this one.
func (o Operation) asFill(now time.Time) Operation {
	return Operation{Ref: o.Ref, Pool: o.Pool, Service: o.Service, ChangedAt: now, New: true, queuedAt: now}
}
