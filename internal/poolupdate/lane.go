// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/verdicts"
	"weir.dev/weir/internal/wholewrite"
)

// lane serializes the writes of a load balancer's pools: one goroutine, and a lock for other
// writers of the load balancer.
type lane struct {
	id    lb.LoadBalancerID
	cfg   *Config
	queue *queue
	// slot is the worker's lock: a channel, because it is held for seconds while Azure works.
	slot chan struct{}
	// ended is closed when the worker is removed.
	ended chan struct{}
	reap  func()

	// wholeAfter is the earliest next batched update. Guarded by slot.
	wholeAfter time.Time
	// rowAfter is the earliest next overlapping update: its final read is throttled before. Guarded
	// by slot.
	rowAfter time.Time
	verdicts *verdicts.Verdicts
}

func (c *Config) attempts() *poolattempt.Config {
	return &poolattempt.Config{
		Interval: c.Interval, AdminState: c.AdminState, Behaviour: c.Behaviour, Azure: c.Azure, Whole: c.Whole,
		Cluster: c.Cluster, Ledger: c.Ledger, Members: c.Members, Log: c.Log,
	}
}

var errEnded = errors.New("the lane has ended")

func newLane(id lb.LoadBalancerID, cfg *Config, verdicts *verdicts.Verdicts) *lane {
	l := &lane{id: id, cfg: cfg, verdicts: verdicts, queue: newQueue(cfg.DriftPeriod, cfg.Interval), slot: make(chan struct{}, 1), ended: make(chan struct{})}
	l.queue.holds = func(groups []*poolschedule.Group, now time.Time) { hold(l, groups, now) }
	l.queue.defers = func(namespace string, due int, now time.Time) []pace.Deferral {
		return cfg.Writes.DeferPools(id.SubscriptionID, namespace, due, now)
	}
	return l
}

// paced returns the pace that a change counts for: the pool's, or the load balancer's if one write
// updates all pools.
func paced(l *lane, pool lb.PoolID, now time.Time) lb.PoolID {
	if l.cfg.Whole != nil && l.cfg.WholeWrites != wholewrite.Never && l.verdicts.Answer(l.id.SubscriptionID, wholewrite.Addresses, now) == behaviour.Taken {
		return lb.PoolID{LoadBalancer: l.id}
	}
	return pool
}

// hold sets how long changes wait for further ones.
func hold(l *lane, groups []*poolschedule.Group, now time.Time) {
	all, changed := lb.PoolID{LoadBalancer: l.id}.Key(), 0
	together := paced(l, lb.PoolID{LoadBalancer: l.id, Name: "any"}, now).Name == ""
	keys := []lb.PoolKey{all}
	for _, g := range groups {
		keys, changed = append(keys, g.Pool()), changed+g.Changed()
	}
	spacings := l.cfg.Writes.Spacings(l.id.SubscriptionID, keys, now)
	for _, g := range groups {
		if together {
			g.Hold = spacings[all].Hold(changed)
		} else {
			g.Hold = spacings[g.Pool()].Hold(g.Changed())
		}
	}
}

// lock returns errEnded or ctx's error. It fails if ctx is done, even if the lock is free.
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

func (l *lane) busy() bool { return len(l.slot) > 0 }

func (l *lane) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		_, ok, retryAt := l.queue.next(now, l.cfg.Interval)
		var blocked obstacle
		if ok {
			blocked = l.enter(ctx)
			l.reap() // the pool may have been forgotten since
			if blocked.askAt.IsZero() || ctx.Err() != nil {
				continue
			}
			retryAt, now = blocked.askAt, time.Now()
		}
		l.tell(blocked, now)
		if !l.sleep(ctx, timer, retryAt) {
			return
		}
	}
}

// sleep waits for operations or until a nonzero time. It returns false once the worker has ended.
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

func (l *lane) tell(blocked obstacle, now time.Time) {
	for _, w := range l.queue.news(blocked, now, l.cfg.Interval) {
		l.cfg.Reporter.Wait(w)
	}
}

// leaveLasts limits the age of a gate's permission: a gate that closed during a wait for the lease
// would cost a retry.
const leaveLasts = time.Second

func (l *lane) gate() obstacle {
	until, reason := l.cfg.Azure.Enter(l.id)
	switch {
	case until.IsZero():
		return obstacle{}
	case reason == "":
		return obstacle{askAt: until, until: until, cause: CausePace}
	}
	return obstacle{askAt: until, until: until, cause: CauseGate, why: reason}
}

// enter takes a turn: it attempts what is due before a waiting write of the load balancer. If it is
// blocked, nothing was taken from the queue.
func (l *lane) enter(ctx context.Context) (blocked obstacle) {
	if l.busy() { // another writer of the load balancer
		l.tell(obstacle{cause: CauseBehind}, time.Now())
	}
	if l.lock(ctx) != nil {
		return obstacle{}
	}
	defer l.unlock()
	setTurn(l.queue, poolschedule.BeginTurn(time.Now()))
	defer setTurn(l.queue, nil)
	for ctx.Err() == nil && blocked.askAt.IsZero() {
		pool, ok := nextInTurn(l.queue, time.Now(), l.cfg.Interval) // the previous holder may have updated some pools
		if !ok {
			break
		}
		blocked = attemptDue(ctx, l, pool)
	}
	return blocked
}

// attemptDue attempts a pool, and others with it. The caller holds the worker's lock.
func attemptDue(ctx context.Context, l *lane, pool lb.PoolKey) (blocked obstacle) {
	checkedAt := time.Now()
	if blocked = l.gate(); !blocked.askAt.IsZero() {
		return blocked
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
	if time.Since(checkedAt) > leaveLasts {
		if blocked = l.gate(); !blocked.askAt.IsZero() {
			return blocked
		}
	}
	if due := l.looks(time.Now()); slices.Contains(due, pool) {
		l.lookTogether(ctx, due)
	} else if due, permissions := l.together(time.Now(), pool); len(due) > 0 {
		l.whole(ctx, due, permissions, valid)
	} else if due, leave := l.inTurn(time.Now(), pool); len(due) > 0 {
		l.pipelined(ctx, pool, due, leave, valid)
	} else {
		l.pass(ctx, pool, valid)
	}
	return obstacle{}
}

// pass attempts one pool. The caller holds the worker's lock and the lease.
func (l *lane) pass(ctx context.Context, pool lb.PoolKey, valid func() bool) {
	start := time.Now()
	t := l.queue.take(pool, start, l.cfg.Interval)
	l.tell(obstacle{cause: CauseBehind}, start) // those not in the batch
	ops := l.cfg.relevant(t.ops)
	if len(ops) == 0 {
		l.queue.done(t, nil, t.history, nil, nil)
		return
	}
	if poolschedule.OnlyCarried(ops) {
		l.queue.back(t, ops)
		return
	}
	needed := func() bool { return l.cfg.needed(ops) }
	r := l.cfg.attempts().Attempt(ctx, poolattempt.Try{Ref: ops[0].Ref, Pool: ops[0].Pool, Valid: valid, Needed: needed}, t.history)
	if r.Outcome != poolwrite.Shutdown {
		l.conclude(ctx, t, ops, r, start)
	}
}
