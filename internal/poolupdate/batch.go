// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/wholewrite"
)

// poolBatch is one pool taken from the queue.
type poolBatch struct {
	pool     lb.PoolKey
	entry    *poolEntry // nil if the pool was forgotten
	ops      []poolschedule.Operation
	history  poolschedule.History
	notified map[poolschedule.ServiceName]poolschedule.Notification
	// resyncDue is true if a check was due.
	resyncDue bool
	// namespace is the one that used its turn, if any.
	namespace string
}

// takeBatch takes a pool's operations for an attempt.
func (q *queue) takeBatch(pool lb.PoolKey, now time.Time, interval time.Duration) poolBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return poolBatch{}
	}
	g := q.groupAt(pool, w, now)
	member, admin := g.DueKinds(now, interval)
	q.rotation.MoveToEnd(g.Namespace)
	t := q.takeBatchLocked(pool, w, now)
	if q.turn != nil && !g.IsCheck() {
		t.namespace = g.Namespace
		q.turn.AddAttempt(t.namespace)
	}
	for i := range t.ops {
		if t.ops[i].Admin {
			t.ops[i].Extra = member && !admin
		} else {
			t.ops[i].Extra = admin && !member
		}
	}
	return t
}

// takeBatchLocked takes a pool that exists. The caller holds q.mu.
func (q *queue) takeBatchLocked(pool lb.PoolKey, w *poolEntry, now time.Time) poolBatch {
	t := poolBatch{pool: pool, entry: w, ops: w.ops, history: w.history, notified: w.notified.toMap(), resyncDue: w.resyncDue}
	if len(t.ops) == 0 && w.resyncDue {
		t.ops = []poolschedule.Operation{w.subject.NewResync(now)}
	}
	w.resyncDue = false
	q.setOps(pool, w, nil)
	w.wakePending = false
	w.inFlight, w.oldestQueuedAt, w.reportedWait = true, poolschedule.NewGroup(pool, t.ops, w.history).OldestQueued(), nil
	return t
}

// finishBatch ends an attempt: retries rank before newer operations. A pool forgotten since is ignored,
// even if it was added again.
func (q *queue) finishBatch(t poolBatch, requeue []poolschedule.Operation, h poolschedule.History, level *uint64, notified map[poolschedule.Notification][]poolschedule.ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.entry
	if q.turn != nil && t.namespace != "" {
		q.turn.MarkDone(t.namespace)
	}
	if w == nil || q.pools[t.pool] != w {
		return
	}
	// A postponed check is not a waiting operation.
	w.resyncDue = w.resyncDue || slices.ContainsFunc(requeue, func(op poolschedule.Operation) bool { return op.Resync })
	requeue = slices.DeleteFunc(requeue, func(op poolschedule.Operation) bool { return op.Resync })
	w.storeHistory(h)
	q.setOps(t.pool, w, poolschedule.MergeOperations(requeue, w.ops...))
	w.inFlight, w.syncedFingerprint = false, level
	q.scheduleCheck(t.pool, w, time.Now())
	for _, notification := range []poolschedule.Notification{poolschedule.NotifyUpdated, poolschedule.NotifyRetrying, poolschedule.NotifyFailed} {
		for _, s := range notified[notification] {
			w.notified = w.notified.withService(s, notification)
		}
	}
}

// takeIfReady takes a pool for another writer's update; false if nothing waits or Retry-After has not
// passed.
func (q *queue) takeIfReady(pool lb.PoolKey, now time.Time) (poolBatch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.withOps[pool]
	if w == nil || w.newGroup(pool, q.debouncer).NotBefore().After(now) {
		return poolBatch{}, false
	}
	return q.takeBatchLocked(pool, w, now), true
}

// requeueBatch requeues operations without an attempt, before newer ones.
func (q *queue) requeueBatch(t poolBatch, ops []poolschedule.Operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.entry
	if q.pools[t.pool] != w {
		return
	}
	w.storeHistory(w.history)
	w.inFlight, w.resyncDue = false, w.resyncDue || t.resyncDue
	ops = slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return op.Resync }) // a check is not a waiting operation
	for i := range ops {
		ops[i].Extra = false
	}
	q.setOps(t.pool, w, poolschedule.MergeOperations(ops, w.ops...))
	q.wakeWorker()
}

// setPendingWrite records that a write guarded by etag may still land, so that the pool's content is
// unknown.
func (q *queue) setPendingWrite(t poolBatch, etag string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.entry.history.Writes.PendingEtag, t.entry.history.Writes.PendingSince, t.entry.syncedFingerprint = etag, time.Time{}, nil
}

// excludePool excludes the pool from batched updates if apart is true. owed is true if an uncounted write
// may have landed.
func (q *queue) excludePool(t poolBatch, apart, owed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.entry.history.ExcludedFromBatch, t.entry.history.UncountedWrite = t.entry.history.ExcludedFromBatch || apart, t.entry.history.UncountedWrite || owed
}

// delayPool delays a pool for a Retry-After, or for another client's write; zero is neither.
func (q *queue) delayPool(t poolBatch, until, others time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.entry.history.NotBefore, t.entry.history.WaitUntil = poolschedule.MaxTime(t.entry.history.NotBefore, until), poolschedule.MaxTime(t.entry.history.WaitUntil, others)
}

func (q *queue) selectPools(now time.Time, pick func([]poolschedule.Group) []lb.PoolKey) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	groups := q.waitingGroups(now)
	for i, g := range groups {
		groups[i].Order, groups[i].InNextRound = q.rotation.OrderOf(g.Namespace), q.rotation.InNextRound(g.Namespace)
	}
	return pick(groups)
}

// trialBlockedReason returns why a trial must not run now, or "".
func (q *queue) trialBlockedReason(now time.Time, c wholewrite.Change) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		g := w.newGroup(key, q.debouncer)
		if reason := g.TrialBlockedReason(now, c); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *Config) filterNeeded(ops []poolschedule.Operation) []poolschedule.Operation {
	return slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return !c.Cluster.IsNeeded(op) })
}

func (c *Config) hasNeeded(ops []poolschedule.Operation) bool {
	return slices.ContainsFunc(ops, c.Cluster.IsNeeded)
}
