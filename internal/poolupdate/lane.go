// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/verdicts"
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
	verdicts *verdicts.Verdicts
}

// errEnded says that the lane is no more; there may be a new one.
var errEnded = errors.New("the lane has ended")

func newLane(id lb.LoadBalancerID, cfg *Config, verdicts *verdicts.Verdicts) *lane {
	q := newQueue(cfg.DriftPeriod, cfg.Interval)
	q.spacings = func(now time.Time, pools []lb.PoolKey) map[lb.PoolKey]time.Duration {
		return cfg.Writes.Spacings(id.SubscriptionID, pools, now)
	}
	return &lane{id: id, cfg: cfg, verdicts: verdicts, queue: q, slot: make(chan struct{}, 1), ended: make(chan struct{})}
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
	if due := l.looks(time.Now()); slices.Contains(due, pool) {
		l.lookTogether(ctx, due)
	} else if due, may := l.together(time.Now()); len(due) > 0 {
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
	if poolschedule.OnlyCarried(ops) {
		l.queue.back(t, ops)
		return
	}
	needed := func() bool { return len(l.relevant(slices.Clone(ops))) > 0 }
	r := l.cfg.attempt(ctx, try{ops[0].Ref, ops[0].Pool, valid, needed}, t.history)
	if r.Outcome != poolwrite.Shutdown {
		l.conclude(ctx, t, ops, r, start)
	}
}
