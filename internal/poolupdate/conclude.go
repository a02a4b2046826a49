// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// conclude settles an attempt's operations, reports the result and requeues retries. The caller
// holds the worker's lock.
func (l *lane) conclude(ctx context.Context, t taken, ops []poolschedule.Operation, r poolwrite.Result, start time.Time) {
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].Drift
	h.Writes.Keep(&r, now)
	h = h.Owes(&r)
	cause := poolschedule.CauseOf(ops, r.Settled())
	outcome, reportedFault := r.Reported(id)
	h, refused := h.Remember(outcome, reportedFault, cause, start, now, l.cfg.Interval)
	h = h.Brings(r, now)
	if h.Brought != 0 && (r.Outcome == poolwrite.Stale || r.Outcome == poolwrite.Refused) { // no machine can join it
		l.cfg.Members.Forget(id)
		h.Brought = 0
	}
	if refused { // this pool caused the rejection
		l.wholeAfter = time.Time{}
	}

	var retryAt time.Time
	if reportedFault != nil {
		retryAt = reportedFault.RetryAt
	}
	h.NotBefore = poolschedule.Later(h.NotBefore, retryAt) // applies whatever happens to the change
	changedAt := poolschedule.OldestChange(ops)
	ops = l.cfg.relevant(ops)
	if !r.Directed() && ctx.Err() != nil {
		return // stopped after the response came: stay silent
	}
	if !r.Directed() && len(ops) == 0 { // no longer needed
		h.Postponed, h.HoldUntil = 0, time.Time{}
		l.queue.done(t, nil, h, nil, nil)
		return
	}
	v := poolschedule.Settle(r.Outcome, r.OfMembers(), retryAt, ops, l.cfg.MaxRetries, poolschedule.Past{
		Told: t.told, GaveUp: h.GaveUp != "", Again: poolwrite.ErrorName(reportedFault) == h.GaveUp, States: !r.Members, Now: now, Longest: l.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.Requeue, poolschedule.Operation.Member)
	if !requeued && (cause.Member || r.Settled()) {
		h.GaveUp = poolwrite.GaveUpOn(outcome, reportedFault)
	}
	h.Trouble = poolschedule.TroubleSince(h.Trouble, outcome, h.GaveUp != "" || r.Open, drift, now)
	downed, restored := h.Writes.Learn(r, drift)
	next, record := poolschedule.Summarize(t.pool, v.Requeue, h), r.Ours()
	differs := r.Differs()
	if r.Settled() {
		differs = nil
	}
	l.cfg.log(ctx, ref, id, r, reportedFault, !t.history.HandedAt.IsZero())
	l.cfg.Reporter.Report(ctx, Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: reportedFault, States: r.Directed() && !r.Settled(),
		Retrying: v.Told[poolschedule.WordRetrying], Failed: v.Told[poolschedule.WordFailed], Updated: v.Told[poolschedule.WordUpdated], GivenUpFor: h.GaveUp,
		Admin: cause.Admin && !cause.Member, AdminTried: cause.Admin, AdminFailed: v.AdminFailed, AdminDone: v.AdminDone, AdminSince: v.AdminSince,
		AdminRetryAt: poolschedule.Upcoming(next.AdminRetryAt(), now), Downed: downed, Restored: restored, Contested: h.Writes.Contested(),
		Written: record.Written, Down: record.Down, Instances: record.Instances, Unusable: r.Unusable, MayLand: r.Open, Settled: r.Settled(), Requeued: requeued, Overtaken: r.Overtaken,
		Desired: r.Desired(), Observed: r.Observed, Foreign: r.Todo.Foreign, Differs: differs,
		RetriesUsed: v.RetriesUsed, Budget: l.cfg.MaxRetries,
		NextEligibleAt: next.EligibleAt(now), RetryAt: poolschedule.Upcoming(next.RetryAt(l.cfg.Interval), now),
		LookAt: l.lookAt(t.pool, h, now), Drift: drift, ChangedAt: changedAt, At: now, Took: now.Sub(start),
	})
	l.queue.done(t, v.Requeue, h, r.Level(), v.Told)
}

// lookAt returns the next check without a change; zero is never.
func (l *lane) lookAt(pool lb.PoolKey, h poolschedule.History, now time.Time) time.Time {
	at := h.LookAt(pool, now, l.cfg.DriftPeriod)
	if at.IsZero() {
		return at
	}
	return poolschedule.Later(at, h.NotBefore)
}

// log logs the result. again is true if the previous attempt waited for machines, too.
func (c *Config) log(ctx context.Context, ref poolschedule.Ref, id lb.PoolID, r poolwrite.Result, reportedFault *fault.Fault, again bool) {
	attrs := []any{"backendPool", ref.Namespace + "/" + ref.Name, "loadBalancer", id.LoadBalancer.Name, "pool", id.Name,
		"outcome", string(r.Outcome)}
	if r.Observed >= 0 {
		attrs = append(attrs, "desired", r.Desired(), "observed", r.Observed)
	}
	switch {
	case r.Handed != nil && r.Handed.Outcome == poolwrite.Postponed:
		level := slog.LevelInfo
		if again {
			level = slog.LevelDebug
		}
		c.Log.Log(ctx, level, "machines of a pool are being written", append(attrs, "why", reportedFault.Error())...)
	case r.Handed != nil, r.Fault != nil:
		c.Log.WarnContext(ctx, "pool not level", append(attrs, "code", reportedFault.Code, "err", reportedFault)...)
	case r.Open:
		c.Log.InfoContext(ctx, "pool level, but a lost write may land yet: the pool's etag does not keep it out", attrs...)
	case r.Outcome == poolwrite.Written:
		c.Log.InfoContext(ctx, "pool written", attrs...)
	default:
		c.Log.Log(ctx, slog.LevelDebug, "pool level", attrs...)
	}
}
