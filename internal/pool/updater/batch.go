// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

type poolBatch struct {
	pool      lb.PoolKey
	entry     *poolEntry // nil if the pool was forgotten
	ops       []schedule.Operation
	history   schedule.History
	notified  schedule.Notifications
	resyncDue bool
	namespace string
}

func (q *queue) takeBatch(pool lb.PoolKey, now time.Time) poolBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pools[pool]
	if w == nil {
		return poolBatch{}
	}
	g := q.groupAt(pool, w, now)
	member, admin := g.DueKinds(now, q.interval)
	q.rotation.MoveToEnd(g.Namespace)
	t := poolBatch{pool: pool, entry: w, ops: w.ops, history: w.history, notified: slices.Clone(w.notified), resyncDue: w.resyncDue}
	if len(t.ops) == 0 && w.resyncDue {
		t.ops = []schedule.Operation{w.subject.NewResync(now)}
	}
	w.resyncDue = false
	q.setOps(pool, w, nil)
	w.wakePending = false
	w.inFlight, w.oldestQueuedAt, w.reportedWait = true, schedule.NewGroup(pool, t.ops, w.history).OldestQueued(), nil
	if q.turn != nil && !g.IsCheck() {
		t.namespace = g.Namespace
		q.turn.AddAttempt(t.namespace)
	}
	for i := range t.ops {
		t.ops[i].Extra = t.ops[i].Admin && member && !admin || t.ops[i].IsMember() && admin && !member
	}
	return t
}

// finishBatch ranks retries before newer operations. A pool forgotten since is ignored, even if added again.
func (q *queue) finishBatch(t poolBatch, requeue []schedule.Operation, h schedule.History, inSync *uint64, notified map[schedule.Notification][]schedule.ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.entry
	if q.turn != nil && t.namespace != "" {
		q.turn.MarkDone(t.namespace)
	}
	if w == nil || q.pools[t.pool] != w {
		return
	}
	w.resyncDue = w.resyncDue || slices.ContainsFunc(requeue, func(op schedule.Operation) bool { return op.Resync })
	requeue = slices.DeleteFunc(requeue, func(op schedule.Operation) bool { return op.Resync })
	w.storeHistory(h)
	q.setOps(t.pool, w, schedule.MergeOperations(requeue, w.ops...))
	w.inFlight, w.syncedFingerprint = false, inSync
	q.scheduleCheck(t.pool, w, time.Now())
	for _, notification := range []schedule.Notification{schedule.NotifyUpdated, schedule.NotifyRetrying, schedule.NotifyFailed} {
		for _, s := range notified[notification] {
			w.notified = w.notified.With(s, notification)
		}
	}
}

func (q *queue) requeueBatch(t poolBatch, ops []schedule.Operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := t.entry
	if q.pools[t.pool] != w {
		return
	}
	w.storeHistory(w.history)
	w.inFlight, w.resyncDue = false, w.resyncDue || t.resyncDue
	ops = slices.DeleteFunc(ops, func(op schedule.Operation) bool { return op.Resync }) // a check is not a waiting operation
	for i := range ops {
		ops[i].Extra = false
	}
	q.setOps(t.pool, w, schedule.MergeOperations(ops, w.ops...))
	q.wakeWorker()
}

func (c *Config) filterNeeded(ops []schedule.Operation) []schedule.Operation {
	return slices.DeleteFunc(ops, func(op schedule.Operation) bool { return !c.Cluster.IsNeeded(op) })
}
