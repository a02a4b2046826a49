// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

type poolUpdate struct {
	takenUpdate
	result     diff.Result
	needsWrite bool
	hasRead    bool
	startedAt  time.Time
	observed   lb.Pool
	// mayHaveLanded is true if an earlier write of the attempt may have taken effect before the read.
	mayHaveLanded bool
}

// takeUpdate takes a pool from the queue; false if it needs no attempt.
func (w *worker) takeUpdate(key lb.PoolKey) (poolUpdate, bool) {
	start := time.Now()
	t := w.queue.takeBatch(key, start)
	t.ops = w.cfg.filterNeeded(t.ops)
	switch {
	case len(t.ops) == 0:
		w.queue.finishBatch(t, nil, t.history, nil, nil)
	case schedule.CauseOf(t.ops, false) == (schedule.Cause{}): // only operations that are not due
		w.queue.requeueBatch(t)
	default:
		return poolUpdate{takenUpdate: t, startedAt: start, result: w.cfg.newResult(t.history)}, true
	}
	return poolUpdate{}, false
}

func (p poolUpdate) target(cfg *Config, valid func() bool) target {
	return target{ref: p.ops[0].Ref, pool: p.ops[0].Pool, isValid: valid, isNeeded: func() bool { return slices.ContainsFunc(p.ops, cfg.Cluster.IsNeeded) }}
}

func (p poolUpdate) forRetry(cfg *Config, fault *armerror.Fault) poolUpdate {
	return poolUpdate{takenUpdate: p.takenUpdate, startedAt: p.startedAt, mayHaveLanded: fault.MayBeApplied, result: p.result.ForSecondTry(cfg.newResult(p.history), fault)}
}

// isAppliedIn also requires a new etag after a write, which invalidates earlier lost writes.
func (p poolUpdate) isAppliedIn(shown lb.Pool) bool {
	return p.result.Change.IsAppliedIn(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.needsWrite || shown.Etag != p.result.Change.Next.Etag)
}

func (p *poolUpdate) recordApplied(shown lb.Pool) {
	if p.result.Observed = len(shown.Addresses); p.needsWrite {
		p.result.CheckEtag(shown.Etag)
	}
}

func (w *worker) finishUpdate(ctx, timeoutCtx context.Context, p poolUpdate, err error) {
	p.result = p.result.FinishAttempt(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if p.result.Outcome != diff.Shutdown {
		w.finishAttempt(ctx, p)
	}
}

// requeueUpdate requeues the operations that are still needed. If the write may land, its etag is kept as that of a lost
// write: while the pool has this etag, it is written even if in sync, which invalidates the lost write.
func (w *worker) requeueUpdate(p poolUpdate, mayLand bool, change func(h *schedule.History)) {
	p.ops = w.cfg.filterNeeded(p.ops)
	w.queue.mu.Lock()
	entry := p.entry
	change(&entry.history)
	if mayLand && p.result.Outcome == diff.Written {
		entry.history.UncountedWrite = true
		entry.history.Writes.PendingEtag, entry.history.Writes.PendingSince, entry.syncedFingerprint = p.result.Change.Next.Etag, time.Time{}, nil
	}
	w.queue.mu.Unlock()
	w.queue.requeueBatch(p.takenUpdate)
}

func (w *worker) updateSeparately(p poolUpdate, mayLand bool) {
	w.requeueUpdate(p, mayLand, func(h *schedule.History) { h.MustBeAlone = true })
}

func (w *worker) poolKey(p lb.Pool) lb.PoolKey {
	return lb.PoolID{LoadBalancer: w.id, Name: p.ID.Name}.Key()
}

func (w *worker) indexPools(b lb.LoadBalancer) map[lb.PoolKey]int {
	at := make(map[lb.PoolKey]int, len(b.Pools))
	for i, p := range b.Pools {
		at[w.poolKey(p)] = i
	}
	return at
}

func isUpdating(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

type takenUpdate struct {
	pool      lb.PoolKey
	entry     *poolEntry // nil if the pool was forgotten
	ops       []schedule.Operation
	history   schedule.History
	notified  schedule.Notifications
	resyncDue bool
	namespace string
}

func (q *queue) takeBatch(pool lb.PoolKey, now time.Time) takenUpdate {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pools[pool]
	if p == nil {
		return takenUpdate{}
	}
	g := q.groupAt(pool, p, now)
	member, admin := g.DueKinds(now, q.interval)
	q.rotation.MoveToEnd(g.Namespace)
	t := takenUpdate{pool: pool, entry: p, ops: p.ops, history: p.history, notified: slices.Clone(p.notified), resyncDue: p.resyncDue}
	if len(t.ops) == 0 && p.resyncDue {
		t.ops = []schedule.Operation{p.subject.NewResync(now)}
	}
	p.resyncDue = false
	q.setOps(pool, p, nil)
	p.wakePending = false
	p.inFlight, p.oldestQueuedAt, p.reportedWait = true, schedule.NewGroup(pool, t.ops, p.history).OldestQueued(), nil
	if q.turn != nil && !g.IsCheck() {
		t.namespace = g.Namespace
		q.turn.AddAttempt(t.namespace)
	}
	for i := range t.ops {
		t.ops[i].Extra = t.ops[i].Admin && member && !admin || t.ops[i].IsMember() && admin && !member
	}
	return t
}

// finishBatch requeues retries before newer operations. It ignores a pool that was forgotten in the meantime, even if it
// was added again.
func (q *queue) finishBatch(t takenUpdate, requeue []schedule.Operation, h schedule.History, inSync *uint64, notified map[schedule.Notification][]schedule.ServiceName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := t.entry
	if q.turn != nil && t.namespace != "" {
		q.turn.MarkDone(t.namespace)
	}
	if p == nil || q.pools[t.pool] != p {
		return
	}
	p.storeHistory(h)
	p.syncedFingerprint = inSync
	q.requeue(t, requeue)
	q.scheduleCheck(t.pool, p, time.Now())
	for _, notification := range []schedule.Notification{schedule.NotifyUpdated, schedule.NotifyRetrying, schedule.NotifyFailed} {
		for _, s := range notified[notification] {
			p.notified = p.notified.With(s, notification)
		}
	}
}

func (q *queue) requeueBatch(t takenUpdate) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := t.entry
	if q.pools[t.pool] != p {
		return
	}
	p.storeHistory(p.history)
	p.resyncDue = p.resyncDue || t.resyncDue
	q.requeue(t, t.ops)
	q.wakeWorker()
}

// requeue ends an attempt. Operations rank before newer ones, and a check does not count as waiting. The caller holds
// q.mu.
func (q *queue) requeue(t takenUpdate, ops []schedule.Operation) {
	isResync := func(op schedule.Operation) bool { return op.Resync }
	t.entry.inFlight, t.entry.resyncDue = false, t.entry.resyncDue || slices.ContainsFunc(ops, isResync)
	ops = slices.DeleteFunc(ops, isResync)
	for i := range ops {
		ops[i].Extra = false
	}
	q.setOps(t.pool, t.entry, schedule.MergeOperations(ops, t.entry.ops...))
}

func (c *Config) filterNeeded(ops []schedule.Operation) []schedule.Operation {
	return slices.DeleteFunc(ops, func(op schedule.Operation) bool { return !c.Cluster.IsNeeded(op) })
}

// finishAttempt settles operations, reports the result and requeues retries. The caller holds w.slot.
func (w *worker) finishAttempt(ctx context.Context, p poolUpdate) {
	t, ops, r, start := p.takenUpdate, p.ops, p.result, p.startedAt
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].Resync
	h.Writes.StorePending(&r, now)
	h = h.AfterMachineWrite(&r)
	cause := schedule.CauseOf(ops, r.IsInSync())
	outcome, reportedFault := r.ReportedOutcome(id)
	h = h.AfterAttempt(outcome, reportedFault, cause, start, now, w.cfg.Interval)
	h = h.AfterTarget(r, now)
	if h.TargetHash != 0 && (r.Outcome == diff.Stale || r.Outcome == diff.Rejected) { // no machine can join it
		w.cfg.Members.Forget(id)
		h.TargetHash = 0
	}

	var retryAt time.Time
	if reportedFault != nil {
		retryAt = reportedFault.RetryAt
	}
	h.NotBefore = ratelimit.MaxTime(h.NotBefore, retryAt) // applies whatever happens to the change
	changedAt := schedule.OldestChange(ops)
	ops = w.cfg.filterNeeded(ops)
	if !r.StatesInSync() && ctx.Err() != nil {
		return // stopped after the response came: stay silent
	}
	if !r.StatesInSync() && len(ops) == 0 { // no longer needed
		h.DelayCount, h.WaitUntil = 0, time.Time{}
		w.queue.finishBatch(t, nil, h, nil, nil)
		return
	}
	v := schedule.ResolveOperations(r.Outcome, r.MemberOutcome(), retryAt, ops, w.cfg.MaxRetries, schedule.PoolStatus{
		LastNotifications: t.notified, HasFinalError: h.FinalError != "", SameError: diff.ErrorName(reportedFault) == h.FinalError, OnlyAdminStates: !r.ChangesMembers, Now: now, MaxBackoff: w.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.Requeue, schedule.Operation.IsMember)
	// A pool that is missing or rejected ends the change that was given up, too.
	if ended := r.IsInSync() || r.Outcome == diff.Stale || r.Outcome == diff.Rejected; !requeued && (cause.Member || ended) {
		h.FinalError = diff.FinalError(outcome, reportedFault)
	}
	h.ErrorSince = schedule.UpdateErrorSince(h.ErrorSince, outcome, h.FinalError != "" || r.HasPending, drift, now)
	downed, restored := h.Writes.RecordResult(r, drift)
	next, record := schedule.NewGroup(t.pool, v.Requeue, h), r.CurrentRecord()
	differs, nextCheckAt := r.Difference(), h.NextCheckAt(t.pool, now, w.cfg.ResyncPeriod)
	if !nextCheckAt.IsZero() {
		nextCheckAt = ratelimit.MaxTime(nextCheckAt, h.NotBefore)
	}
	if r.IsInSync() {
		differs = nil
	}
	report := Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: reportedFault, StatesInSync: r.StatesInSync() && !r.IsInSync(),
		Retrying: v.Notifications[schedule.NotifyRetrying], Failed: v.Notifications[schedule.NotifyFailed], Updated: v.Notifications[schedule.NotifyUpdated], FailureReason: h.FinalError,
		Admin: cause.Admin && !cause.Member, AdminAttempted: cause.Admin, AdminFailed: v.AdminFailed, AdminDone: v.AdminDone, AdminSince: v.AdminSince,
		AdminRetryAt: schedule.NotBeforeNow(next.AdminRetryAt(), now), MarkedDown: downed, MarkedUp: restored, Conflicting: h.Writes.ConflictingIPs(), Overlapping: r.Overlapping,
		Written: record.Written, Down: record.Down, Instances: record.Instances, Unusable: r.Unusable, HasPendingWrite: r.HasPending, InSync: r.IsInSync(), WillRetry: requeued, HadConflict: r.HadConflict,
		Desired: r.DesiredCount(), Observed: r.Observed, Foreign: r.Change.ForeignCount, Diff: differs,
		RetriesUsed: v.RetriesUsed, Budget: w.cfg.MaxRetries,
		NextEligibleAt: next.EligibleAt(now), RetryAt: schedule.NotBeforeNow(next.RetryAt(w.cfg.Interval), now),
		NextCheckAt: nextCheckAt, Resync: drift, ChangedAt: changedAt, At: now, Duration: now.Sub(start),
	}
	w.cfg.logResult(ctx, r, report, t.history)
	w.cfg.Reporter.Report(ctx, report)
	w.queue.finishBatch(t, v.Requeue, h, r.SyncedFingerprint(), v.Notifications)
}

// logResult logs an attempt; before is the history before it. A failure like the last one is logged again only if it is
// the final one, or that of a resync.
func (c *Config) logResult(ctx context.Context, r diff.Result, report Report, before schedule.History) {
	ref, id := report.Ref, report.Pool
	attrs := []any{"backendPool", ref.Namespace + "/" + ref.Name, "loadBalancer", id.LoadBalancer.Name, "pool", id.Name,
		"outcome", string(r.Outcome)}
	if r.Observed >= 0 {
		attrs = append(attrs, "desired", r.DesiredCount(), "observed", r.Observed)
	}
	levelOf := func(level slog.Level, repeated bool) slog.Level {
		if repeated {
			return slog.LevelDebug
		}
		return level
	}
	switch {
	case r.MemberProgress != nil && r.MemberProgress.Outcome == diff.Postponed:
		level := levelOf(slog.LevelInfo, !before.TargetSetAt.IsZero())
		c.Log.Log(ctx, level, "machines of a pool are being written", append(attrs, "why", report.Fault.Error())...)
	case r.MemberProgress != nil, r.Fault != nil:
		attrs = append(attrs, "code", report.Fault.Code, "err", report.Fault)
		for _, at := range []time.Time{report.RetryAt, report.AdminRetryAt, report.NextCheckAt} {
			if !at.IsZero() {
				attrs = append(attrs, "nextAttempt", humanize.FormatTime(at))
				break
			}
		}
		repeated := before.LastFailure == diff.ErrorName(report.Fault) && !report.Resync && len(report.Failed) == 0
		c.Log.Log(ctx, levelOf(slog.LevelWarn, repeated), "pool out of sync", attrs...)
	case r.HasPending:
		c.Log.InfoContext(ctx, "pool in sync, but a lost write may still be applied: the pool's etag does not exclude it", attrs...)
	case r.Outcome == diff.Written:
		c.Log.InfoContext(ctx, "pool written", attrs...)
	default:
		c.Log.Log(ctx, slog.LevelDebug, "pool in sync", attrs...)
	}
}
