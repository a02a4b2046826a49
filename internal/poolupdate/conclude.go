// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// conclude settles the operations of an attempt, tells what became of it, and gives back
// to the queue what is to be tried again. The caller holds the lane.
func (l *lane) conclude(ctx context.Context, t taken, ops []poolschedule.Operation, r poolwrite.Result, start time.Time) {
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].Drift
	h.Writes.Keep(&r, now)
	if h.Owed && r.Directed() {
		r.Outcome, r.Members = poolwrite.Written, true
	}
	h.Owed = h.Owed && !r.Directed()
	cause := poolschedule.CauseOf(ops, r.Settled())
	outcome, told := r.Reported(id)
	h, refused := h.Remember(outcome, r.Fault, cause, start, now, l.cfg.Interval)
	if refused { // it is what the write was refused for
		l.wholeAfter = time.Time{}
	}

	var retryAt time.Time
	if r.Fault != nil {
		retryAt = r.Fault.RetryAt
	}
	h.NotBefore = poolschedule.Later(h.NotBefore, retryAt) // whatever becomes of the change
	changedAt := poolschedule.OldestChange(ops)
	ops = l.relevant(ops)
	if !r.Directed() && ctx.Err() != nil {
		return // stopped since the answer came: as quiet as one that was stopped before
	}
	if !r.Directed() && len(ops) == 0 { // nobody is left to hear of it, or to be held up
		h.Postponed, h.HoldUntil = 0, time.Time{}
		l.queue.done(t, nil, h, nil, nil)
		return
	}
	v := poolschedule.Settle(r.Outcome, r.Interfaces, retryAt, ops, l.cfg.MaxRetries, poolschedule.Past{
		Told: t.told, GaveUp: h.GaveUp != "", Again: poolwrite.ErrorName(r.Fault) == h.GaveUp, States: !r.Members, Now: now, Longest: l.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.Requeue, poolschedule.Operation.Member)
	if !requeued && (cause.Member || r.Settled()) {
		h.GaveUp = r.GaveUpOn()
	}
	h.Trouble = poolschedule.TroubleSince(h.Trouble, outcome, h.GaveUp != "" || r.Open, drift, now)
	downed, restored := h.Writes.Learn(r, drift)
	next, record := poolschedule.Summarize(t.pool, v.Requeue, h), r.Ours()
	l.log(ctx, ref, id, r)
	l.cfg.Reporter.Report(ctx, Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: told, States: r.Interfaces && r.Directed(),
		Retrying: v.Told[poolschedule.WordRetrying], Failed: v.Told[poolschedule.WordFailed], Updated: v.Told[poolschedule.WordUpdated], GivenUpFor: h.GaveUp,
		Admin: cause.Admin && !cause.Member, AdminTried: cause.Admin, AdminFailed: v.AdminFailed, AdminDone: v.AdminDone, AdminSince: v.AdminSince,
		AdminRetryAt: next.AdminRetryAt(), Downed: downed, Restored: restored, Contested: h.Writes.Contested(),
		Written: record.Written, Down: record.Down, MayLand: r.Open, Settled: r.Settled(), Requeued: requeued, Overtaken: r.Overtaken,
		Desired: len(r.Wanted), Observed: r.Observed, Foreign: r.Todo.Foreign,
		RetriesUsed: v.RetriesUsed, Budget: l.cfg.MaxRetries,
		NextEligibleAt: next.EligibleAt(now), RetryAt: next.RetryAt(l.cfg.Interval),
		LookAt: l.lookAt(t.pool, h, now), Drift: drift, ChangedAt: changedAt, At: now, Took: now.Sub(start),
	})
	l.queue.done(t, v.Requeue, h, r.Level(), v.Told)
}

// lookAt returns when the pool is looked at next for drift; zero is never.
func (l *lane) lookAt(pool lb.PoolKey, h poolschedule.History, now time.Time) time.Time {
	at := h.LookAt(pool, now, l.cfg.DriftPeriod)
	if at.IsZero() {
		return at
	}
	return poolschedule.Later(at, h.NotBefore)
}

// relevant drops the operations that have nobody left to serve.
func (l *lane) relevant(ops []poolschedule.Operation) []poolschedule.Operation {
	return slices.DeleteFunc(ops, func(op poolschedule.Operation) bool { return !l.cfg.Cluster.Relevant(op) })
}

func (l *lane) log(ctx context.Context, ref poolschedule.Ref, id lb.PoolID, r poolwrite.Result) {
	attrs := []any{"backendPool", ref.Namespace + "/" + ref.Name, "loadBalancer", id.LoadBalancer.Name, "pool", id.Name,
		"outcome", string(r.Outcome)}
	if r.Observed >= 0 {
		attrs = append(attrs, "desired", len(r.Wanted), "observed", r.Observed)
	}
	switch {
	case r.Fault != nil:
		l.cfg.Log.WarnContext(ctx, "pool not level", append(attrs, "code", r.Fault.Code, "err", r.Fault.Error())...)
	case r.Open:
		l.cfg.Log.InfoContext(ctx, "pool level, but a lost write may land yet: the pool's etag does not keep it out", attrs...)
	case r.Outcome == poolwrite.Written:
		l.cfg.Log.InfoContext(ctx, "pool written", attrs...)
	default:
		l.cfg.Log.Log(ctx, slog.LevelDebug, "pool level", attrs...)
	}
}
