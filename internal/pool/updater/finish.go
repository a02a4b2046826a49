// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// finishAttempt settles operations, reports the result and requeues retries. The caller holds l.slot.
func (l *worker) finishAttempt(ctx context.Context, p poolUpdate) {
	t, ops, r, start := p.batch, p.ops, p.result, p.startedAt
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].Resync
	h.Writes.StorePending(&r, now)
	h = h.AfterMachineWrite(&r)
	cause := schedule.CauseOf(ops, r.IsInSync())
	outcome, reportedFault := r.ReportedOutcome(id)
	h = h.AfterAttempt(outcome, reportedFault, cause, start, now, l.cfg.Interval)
	h = h.AfterTarget(r, now)
	if h.TargetHash != 0 && (r.Outcome == diff.Stale || r.Outcome == diff.Rejected) { // no machine can join it
		l.cfg.Members.Forget(id)
		h.TargetHash = 0
	}

	var retryAt time.Time
	if reportedFault != nil {
		retryAt = reportedFault.RetryAt
	}
	h.NotBefore = ratelimit.MaxTime(h.NotBefore, retryAt) // applies whatever happens to the change
	changedAt := schedule.OldestChange(ops)
	ops = l.cfg.filterNeeded(ops)
	if !r.StatesInSync() && ctx.Err() != nil {
		return // stopped after the response came: stay silent
	}
	if !r.StatesInSync() && len(ops) == 0 { // no longer needed
		h.DelayCount, h.WaitUntil = 0, time.Time{}
		l.queue.finishBatch(t, nil, h, nil, nil)
		return
	}
	v := schedule.ResolveOperations(r.Outcome, r.MemberOutcome(), retryAt, ops, l.cfg.MaxRetries, schedule.PoolStatus{
		LastNotifications: t.notified, HasFinalError: h.FinalError != "", SameError: diff.ErrorName(reportedFault) == h.FinalError, OnlyAdminStates: !r.ChangesMembers, Now: now, MaxBackoff: l.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.Requeue, schedule.Operation.IsMember)
	// A pool that is missing or rejected ends the change that was given up, too.
	if ended := r.IsInSync() || r.Outcome == diff.Stale || r.Outcome == diff.Rejected; !requeued && (cause.Member || ended) {
		h.FinalError = diff.FinalError(outcome, reportedFault)
	}
	h.ErrorSince = schedule.UpdateErrorSince(h.ErrorSince, outcome, h.FinalError != "" || r.HasPending, drift, now)
	downed, restored := h.Writes.RecordResult(r, drift)
	next, record := schedule.NewGroup(t.pool, v.Requeue, h), r.CurrentRecord()
	differs, nextCheckAt := r.Difference(), h.NextCheckAt(t.pool, now, l.cfg.ResyncPeriod)
	if !nextCheckAt.IsZero() {
		nextCheckAt = ratelimit.MaxTime(nextCheckAt, h.NotBefore)
	}
	if r.IsInSync() {
		differs = nil
	}
	l.cfg.logResult(ctx, ref, id, r, reportedFault, !t.history.TargetSetAt.IsZero())
	l.cfg.Reporter.Report(ctx, Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: reportedFault, StatesInSync: r.StatesInSync() && !r.IsInSync(),
		Retrying: v.Notifications[schedule.NotifyRetrying], Failed: v.Notifications[schedule.NotifyFailed], Updated: v.Notifications[schedule.NotifyUpdated], FailureReason: h.FinalError,
		Admin: cause.Admin && !cause.Member, AdminAttempted: cause.Admin, AdminFailed: v.AdminFailed, AdminDone: v.AdminDone, AdminSince: v.AdminSince,
		AdminRetryAt: schedule.NotBeforeNow(next.AdminRetryAt(), now), MarkedDown: downed, MarkedUp: restored, Conflicting: h.Writes.ConflictingIPs(), Overlapping: r.Overlapping,
		Written: record.Written, Down: record.Down, Instances: record.Instances, Unusable: r.Unusable, HasPendingWrite: r.HasPending, InSync: r.IsInSync(), WillRetry: requeued, HadConflict: r.HadConflict,
		Desired: r.DesiredCount(), Observed: r.Observed, Foreign: r.Change.ForeignCount, Diff: differs,
		RetriesUsed: v.RetriesUsed, Budget: l.cfg.MaxRetries,
		NextEligibleAt: next.EligibleAt(now), RetryAt: schedule.NotBeforeNow(next.RetryAt(l.cfg.Interval), now),
		NextCheckAt: nextCheckAt, Resync: drift, ChangedAt: changedAt, At: now, Duration: now.Sub(start),
	})
	l.queue.finishBatch(t, v.Requeue, h, r.SyncedFingerprint(), v.Notifications)
}

func (c *Config) logResult(ctx context.Context, ref schedule.Ref, id lb.PoolID, r diff.Result, reportedFault *armerror.Fault, again bool) {
	attrs := []any{"backendPool", ref.Namespace + "/" + ref.Name, "loadBalancer", id.LoadBalancer.Name, "pool", id.Name,
		"outcome", string(r.Outcome)}
	if r.Observed >= 0 {
		attrs = append(attrs, "desired", r.DesiredCount(), "observed", r.Observed)
	}
	switch {
	case r.MemberProgress != nil && r.MemberProgress.Outcome == diff.Postponed:
		level := slog.LevelInfo
		if again {
			level = slog.LevelDebug
		}
		c.Log.Log(ctx, level, "machines of a pool are being written", append(attrs, "why", reportedFault.Error())...)
	case r.MemberProgress != nil, r.Fault != nil:
		c.Log.WarnContext(ctx, "pool out of sync", append(attrs, "code", reportedFault.Code, "err", reportedFault)...)
	case r.HasPending:
		c.Log.InfoContext(ctx, "pool in sync, but a lost write may still be applied: the pool's etag does not exclude it", attrs...)
	case r.Outcome == diff.Written:
		c.Log.InfoContext(ctx, "pool written", attrs...)
	default:
		c.Log.Log(ctx, slog.LevelDebug, "pool in sync", attrs...)
	}
}
