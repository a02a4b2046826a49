// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// conclude settles the operations of an attempt, tells what became of it, and gives back
// to the queue what is to be tried again. The caller holds the lane.
func (l *lane) conclude(ctx context.Context, t taken, ops []Operation, r poolwrite.Result, start time.Time) {
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].drift
	h.writes.Keep(&r, now)
	if h.owed && r.Directed() {
		r.Outcome, r.Members = poolwrite.Written, true
	}
	h.owed = h.owed && !r.Directed()
	cause := causeOf(ops, r.Settled())
	outcome, told := r.Reported(id)
	h, refused := h.remember(outcome, r.Fault, cause, start, now, l.cfg.Interval)
	if refused { // it is what the write was refused for
		l.wholeAfter = time.Time{}
	}

	var retryAt time.Time
	if r.Fault != nil {
		retryAt = r.Fault.RetryAt
	}
	h.notBefore = later(h.notBefore, retryAt) // whatever becomes of the change
	changedAt := oldestChange(ops)
	ops = l.relevant(ops)
	if !r.Directed() && ctx.Err() != nil {
		return // stopped since the answer came: as quiet as one that was stopped before
	}
	if !r.Directed() && len(ops) == 0 { // nobody is left to hear of it, or to be held up
		h.postponed, h.holdUntil = 0, time.Time{}
		l.queue.done(t, nil, h, nil, nil)
		return
	}
	v := settle(r.Outcome, r.Interfaces, retryAt, ops, l.cfg.MaxRetries, past{
		told: t.told, gaveUp: h.gaveUp != "", again: poolwrite.ErrorName(r.Fault) == h.gaveUp, states: !r.Members, now: now, longest: l.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.requeue, Operation.member)
	if !requeued && (cause.member || r.Settled()) {
		h.gaveUp = r.GaveUpOn()
	}
	h.trouble = troubleSince(h.trouble, outcome, h.gaveUp != "" || r.Open, drift, now)
	downed, restored := h.writes.Learn(r, drift)
	next, record := summarize(t.pool, v.requeue, h), r.Ours()
	l.log(ctx, ref, id, r)
	l.cfg.Reporter.Report(ctx, Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: told, States: r.Interfaces && r.Directed(),
		Retrying: v.told[wordRetrying], Failed: v.told[wordFailed], Updated: v.told[wordUpdated], GivenUpFor: h.gaveUp,
		Admin: cause.admin && !cause.member, AdminTried: cause.admin, AdminFailed: v.adminFailed, AdminDone: v.adminDone, AdminSince: v.adminSince,
		AdminRetryAt: next.adminRetryAt(), Downed: downed, Restored: restored, Contested: h.writes.Contested(),
		Written: record.Written, Down: record.Down, MayLand: r.Open, Settled: r.Settled(), Requeued: requeued, Overtaken: r.Overtaken,
		Desired: len(r.Wanted), Observed: r.Observed, Foreign: r.Todo.Foreign,
		RetriesUsed: v.retriesUsed, Budget: l.cfg.MaxRetries,
		NextEligibleAt: next.eligibleAt(now), RetryAt: next.retryAt(now, l.cfg.Interval),
		LookAt: l.lookAt(t.pool, h, now), Drift: drift, ChangedAt: changedAt, At: now, Took: now.Sub(start),
	})
	l.queue.done(t, v.requeue, h, r.Level(), v.told)
}

// lookAt returns when the pool is looked at next for drift; zero is never.
func (l *lane) lookAt(pool lb.PoolKey, h history, now time.Time) time.Time {
	at := h.lookAt(pool, now, l.cfg.DriftPeriod)
	if at.IsZero() {
		return at
	}
	return later(at, h.notBefore)
}

// relevant drops the operations that have nobody left to serve.
func (l *lane) relevant(ops []Operation) []Operation {
	return slices.DeleteFunc(ops, func(op Operation) bool { return !l.cfg.Cluster.Relevant(op) })
}

func (l *lane) log(ctx context.Context, ref Ref, id lb.PoolID, r poolwrite.Result) {
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
