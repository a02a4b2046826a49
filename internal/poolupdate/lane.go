// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// lane is the one path by which a load balancer's pools are written: one goroutine,
// and a lock for whoever else has to write that load balancer.
type lane struct {
	id    lb.LoadBalancerID
	cfg   *Config
	queue *queue
	// slot is the lane's lock. It is a channel, not a mutex, because it is held
	// while Azure works, which takes seconds.
	slot chan struct{}
	// ended is closed when the lane has no pool left, which reap finds out.
	ended chan struct{}
	reap  func()

	// wholeAfter is when the load balancer may be written whole again. It belongs to whoever
	// holds the lane.
	wholeAfter time.Time
	// verdicts say whether Azure takes that.
	verdicts *verdicts
}

// errEnded says that the lane is no more; there may be a new one.
var errEnded = errors.New("the lane has ended")

func newLane(id lb.LoadBalancerID, cfg *Config, verdicts *verdicts) *lane {
	return &lane{id: id, cfg: cfg, verdicts: verdicts, queue: newQueue(cfg.DriftPeriod), slot: make(chan struct{}, 1), ended: make(chan struct{})}
}

// lock takes the lane, or returns errEnded or the context's error. Whoever is stopping does
// not get it, free or not.
func (l *lane) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.slot <- struct{}{}:
		return nil
	case <-l.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lane) unlock() { <-l.slot }

// busy reports whether somebody holds the lane just now.
func (l *lane) busy() bool { return len(l.slot) > 0 }

// run attempts what admission picks and the gates let through, until the context is
// done or the lane ends.
func (l *lane) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		_, ok, askAt := l.queue.next(now, l.cfg.Interval)
		var met obstacle
		if ok {
			met = l.enter(ctx)
			l.reap() // the pool may have been forgotten meanwhile
			if met.askAt.IsZero() || ctx.Err() != nil {
				continue
			}
			askAt, now = met.askAt, time.Now()
		}
		l.tell(met, now)
		if !l.sleep(ctx, timer, askAt) {
			return
		}
	}
}

// sleep waits for operations, or for a time if there is one. It returns false when the
// lane has ended.
func (l *lane) sleep(ctx context.Context, timer *time.Timer, until time.Time) bool {
	var due <-chan time.Time
	if !until.IsZero() {
		timer.Reset(time.Until(until))
		due = timer.C
	}
	select {
	case <-l.ended:
		return false
	case <-ctx.Done():
	case <-l.queue.wake:
	case <-due:
	}
	return true
}

// obstacle is what keeps a lane from a pass.
type obstacle struct {
	askAt time.Time // again; zero if nothing kept it
	// until is when the obstacle is over; zero if nobody knows.
	until time.Time
	cause Cause
	why   string
}

// tell says which pools wait, and for what.
func (l *lane) tell(met obstacle, now time.Time) {
	for _, w := range l.queue.news(met, now, l.cfg.Interval) {
		l.cfg.Reporter.Wait(w)
	}
}

// leaveLasts is how long the gates' leave is good for. Somebody else can hold the lease for
// a while, and a gate that has closed meanwhile would cost a retry.
const leaveLasts = time.Second

// gate asks the gates for leave.
func (l *lane) gate() obstacle {
	until, why := l.cfg.Azure.Enter(l.id)
	switch {
	case until.IsZero():
		return obstacle{}
	case why == "":
		return obstacle{askAt: until, until: until, cause: CausePace}
	}
	return obstacle{askAt: until, until: until, cause: CauseGate, why: why}
}

// enter makes a pass if the gates and the lease let it, in the order of the locks: the
// lane, then the lease. Otherwise nothing was taken from the queue.
func (l *lane) enter(ctx context.Context) (met obstacle) {
	if l.busy() { // somebody else writes the load balancer
		l.tell(obstacle{cause: CauseBehind}, time.Now())
	}
	if l.lock(ctx) != nil {
		return obstacle{}
	}
	defer l.unlock()
	asked := time.Now()
	pool, ok, _ := l.queue.next(asked, l.cfg.Interval) // whoever held the lane may have carried some along
	if !ok {
		return obstacle{}
	}
	if met = l.gate(); !met.askAt.IsZero() {
		return met
	}
	valid := func() bool { return true }
	if l.cfg.Lease != nil {
		held, leave, err := l.cfg.Lease.Enter(ctx)
		if err != nil {
			return obstacle{askAt: time.Now().Add(l.cfg.Interval), cause: CauseLease, why: err.Error()}
		}
		defer leave()
		valid = held
	}
	if time.Since(asked) > leaveLasts {
		if met = l.gate(); !met.askAt.IsZero() {
			return met
		}
	}
	if due, may := l.together(time.Now()); len(due) > 0 {
		l.whole(ctx, due, may, valid)
	} else {
		l.pass(ctx, pool, valid)
	}
	return obstacle{}
}

// pass makes one attempt for one pool and settles it. The caller holds the lane and the
// lease.
func (l *lane) pass(ctx context.Context, pool lb.PoolKey, valid func() bool) {
	start := time.Now()
	t := l.queue.take(pool, start, l.cfg.Interval)
	l.tell(obstacle{cause: CauseBehind}, start) // the others
	ops := l.relevant(t.ops)
	if len(ops) == 0 {
		l.queue.done(t, nil, t.history, nil, nil)
		return
	}
	needed := func() bool { return len(l.relevant(slices.Clone(ops))) > 0 }
	r := l.cfg.attempt(ctx, try{ops[0].Ref, ops[0].Pool, valid, needed}, t.history)
	if r.outcome != Shutdown {
		l.conclude(ctx, t, ops, r, start)
	}
}

// conclude settles the operations of an attempt, tells what became of it, and gives back
// to the queue what is to be tried again. The caller holds the lane.
func (l *lane) conclude(ctx context.Context, t taken, ops []Operation, r result, start time.Time) {
	now, h := time.Now(), t.history
	ref, id, drift := ops[0].Ref, ops[0].Pool, ops[0].drift
	h.openSince = r.opened(h.openSince, now)
	h.lost, h.kept = r.lost, r.kept
	if h.owed && r.outcome == Unchanged {
		r.outcome = Written
	}
	h.owed = h.owed && !r.directed()
	cause := causeOf(ops, r.settled())
	outcome, told := r.reported(id)
	h = l.remember(h, outcome, r.fault, cause, start, now)

	var retryAt time.Time
	if r.fault != nil {
		retryAt = r.fault.RetryAt
	}
	h.notBefore = later(h.notBefore, retryAt) // whatever becomes of the change
	changedAt := oldestChange(ops)
	ops = l.relevant(ops)
	if !r.directed() && ctx.Err() != nil {
		return // stopped since the answer came: as quiet as one that was stopped before
	}
	if !r.directed() && len(ops) == 0 { // nobody is left to hear of it
		l.queue.done(t, nil, h, nil, nil)
		return
	}
	v := settle(r.outcome, r.interfaces, retryAt, ops, l.cfg.MaxRetries, past{
		told: t.told, gaveUp: h.gaveUp != "", again: errorName(r.fault) == h.gaveUp, now: now, longest: l.cfg.Interval,
	})
	requeued := slices.ContainsFunc(v.requeue, Operation.member)
	if !requeued && (cause.member || r.settled()) {
		h.gaveUp = gaveUpOn(r)
	}
	h.trouble = troubleSince(h.trouble, outcome, h.gaveUp != "" || r.open, drift, now)
	var downed, restored []netip.Addr
	h.contest = h.contest.learn(r, h.down, drift)
	h, downed, restored = h.learn(r)
	next, record := summarize(t.pool, v.requeue, h), r.record()
	l.log(ctx, ref, id, r)
	l.cfg.Reporter.Report(ctx, Report{
		Ref: ref, Pool: id, Outcome: outcome, Fault: told, States: r.interfaces && r.directed(),
		Retrying: v.told[wordRetrying], Failed: v.told[wordFailed], Updated: v.told[wordUpdated], GivenUpFor: h.gaveUp,
		Admin: cause.admin && !cause.member, AdminTried: cause.admin, AdminFailed: v.adminFailed, AdminDone: v.adminDone, AdminSince: v.adminSince,
		AdminRetryAt: next.adminRetryAt(), Downed: downed, Restored: restored, Contested: h.contest.contested(),
		Written: record.Written, Down: record.Down, MayLand: r.open, Settled: r.settled(), Requeued: requeued, Overtaken: r.overtaken,
		Desired: len(r.wanted), Observed: r.observed, Foreign: r.foreign,
		RetriesUsed: v.retriesUsed, Budget: l.cfg.MaxRetries,
		NextEligibleAt: next.eligibleAt(now), RetryAt: next.retryAt(now, l.cfg.Interval),
		LookAt: l.lookAt(t.pool, h, now), Drift: drift, ChangedAt: changedAt, At: now, Took: now.Sub(start),
	})
	l.queue.done(t, v.requeue, h, r.level(), v.told)
}

// lookAt returns when the pool is looked at next for drift; zero is never.
func (l *lane) lookAt(pool lb.PoolKey, h history, now time.Time) time.Time {
	at := lookAfter(pool, now, l.cfg.DriftPeriod, h.trouble)
	if at.IsZero() {
		return at
	}
	return later(at, h.notBefore)
}

// relevant drops the operations that have nobody left to serve.
func (l *lane) relevant(ops []Operation) []Operation {
	return slices.DeleteFunc(ops, func(op Operation) bool { return !l.cfg.Cluster.Relevant(op) })
}

// remember brings a pool's history up to date. A pass is spent by fresh work alone:
// a retry has waited its interval already.
func (l *lane) remember(h history, outcome Outcome, f *fault.Fault, by cause, start, now time.Time) history {
	if outcome == Postponed {
		h.postponed++
		h.holdUntil = now.Add(backoff.Doubling{First: time.Second, Max: l.cfg.Interval}.After(h.postponed))
		return h
	}
	switch outcome {
	case Written, Unchanged:
		h.apart = false
	case Terminal, Refused:
		if f != nil && f.Exhausted() {
			break // that is nothing about the pool
		}
		if h.apart { // it is what the write was refused for
			l.wholeAfter = time.Time{}
		}
		h.apart = true
	}
	h.postponed, h.holdUntil = 0, time.Time{}
	if by.member {
		h.lastAttempt = start
	}
	if by.admin {
		h.lastAdmin = start
	}
	if by.fresh {
		h.passes = h.passes.take(start, l.cfg.Interval)
	}
	return h
}

func (l *lane) log(ctx context.Context, ref Ref, id lb.PoolID, r result) {
	attrs := []any{"backendPool", ref.Namespace + "/" + ref.Name, "loadBalancer", id.LoadBalancer.Name, "pool", id.Name,
		"outcome", string(r.outcome)}
	if r.observed >= 0 {
		attrs = append(attrs, "desired", len(r.wanted), "observed", r.observed)
	}
	switch {
	case r.fault != nil:
		l.cfg.Log.WarnContext(ctx, "pool not level", append(attrs, "code", r.fault.Code, "err", r.fault.Error())...)
	case r.open:
		l.cfg.Log.InfoContext(ctx, "pool level, but a lost write may land yet: the pool has kept its etag", attrs...)
	case r.outcome == Written:
		l.cfg.Log.InfoContext(ctx, "pool written", attrs...)
	default:
		l.cfg.Log.Log(ctx, slog.LevelDebug, "pool level", attrs...)
	}
}
