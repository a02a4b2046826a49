// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

type worker struct {
	id    lb.LoadBalancerID
	cfg   *Config
	queue *queue
	// slot is the worker's lock, also for other writers of the load balancer. It is a channel because it is held for
	// seconds.
	slot         chan struct{}
	stopped      chan struct{}
	removeIfIdle func()

	// overlapAfter delays overlapping updates while their final read is throttled. Guarded by slot.
	overlapAfter time.Time
	// overlap adapts how many writes overlap. Guarded by slot; isSerial is for other readers.
	overlap  schedule.Overlap
	isSerial atomic.Bool
}

var errWorkerStopped = errors.New("the worker has stopped")

func newWorker(id lb.LoadBalancerID, cfg *Config) *worker {
	w := &worker{id: id, cfg: cfg, overlap: schedule.NewOverlap(cfg.Serial || cfg.Pipeline == nil, cfg.Behaviour.Overlap), queue: newQueue(cfg.ResyncPeriod, cfg.Interval), slot: make(chan struct{}, 1), stopped: make(chan struct{})}
	w.isSerial.Store(w.overlap.IsLimited())
	w.queue.setHolds = func(groups []*schedule.Group, now time.Time) { setHolds(w, groups, now) }
	w.queue.deferChanges = func(namespace string, due int, now time.Time) []ratelimit.Deferral {
		return cfg.Writes.DeferPools(id.SubscriptionID, namespace, due, now)
	}
	return w
}

func setHolds(w *worker, groups []*schedule.Group, now time.Time) {
	keys := make([]lb.PoolKey, len(groups))
	for i, g := range groups {
		keys[i] = g.Pool
	}
	spacings := w.cfg.Writes.SchedulesFor(w.id.SubscriptionID, keys, now)
	for _, g := range groups {
		s := spacings[g.Pool]
		g.HoldFor, g.LongestHold, g.QuotaNotBefore = s.HoldFor(g.ChangeCount), s.Longest, s.NotBefore
		if g.CanGather() {
			g.HoldFor = max(g.HoldFor, s.GatherFor())
		}
	}
}

// lock returns errWorkerStopped or ctx's error. It fails if ctx is done, even if the lock is free.
func (w *worker) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.slot <- struct{}{}:
		return nil
	case <-w.stopped:
		return errWorkerStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *worker) unlock() { <-w.slot }

func (w *worker) isLocked() bool { return len(w.slot) > 0 }

func (w *worker) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		_, ok, retryAt := w.queue.nextPool(now)
		var blocked blocker
		if ok {
			blocked = w.runTurn(ctx)
			w.removeIfIdle() // the pool may have been forgotten since
			if blocked.retryAt.IsZero() || ctx.Err() != nil {
				continue
			}
			retryAt, now = blocked.retryAt, time.Now()
		}
		w.reportWaits(blocked, now)
		if !w.waitForWork(ctx, timer, retryAt) {
			return
		}
	}
}

func (w *worker) waitForWork(ctx context.Context, timer *time.Timer, until time.Time) bool {
	var due <-chan time.Time
	if !until.IsZero() {
		timer.Reset(time.Until(until))
		due = timer.C
	}
	select {
	case <-w.stopped:
		return false
	case <-ctx.Done():
	case <-w.queue.wakeup:
	case <-due:
	}
	return true
}

func (w *worker) reportWaits(blocked blocker, now time.Time) {
	for _, wait := range w.queue.changedWaits(blocked, now) {
		w.cfg.Reporter.ReportWait(wait)
	}
}

// permitTTL limits the age of a gate's permission, which may close during a wait for the lease.
const permitTTL = time.Second

func (w *worker) checkGate() blocker {
	until, reason := w.cfg.Azure.Enter(w.id)
	switch {
	case until.IsZero():
		return blocker{}
	case reason == "":
		return blocker{retryAt: until, until: until, cause: CausePace}
	}
	return blocker{retryAt: until, until: until, cause: CauseGate, message: reason}
}

// runTurn attempts what is due before a waiting write of the load balancer. If it returns a blocker, it took nothing
// from the queue.
func (w *worker) runTurn(ctx context.Context) (blocked blocker) {
	if w.isLocked() { // another writer of the load balancer
		w.reportWaits(blocker{cause: CauseBehind}, time.Now())
	}
	if w.lock(ctx) != nil {
		return blocker{}
	}
	defer w.unlock()
	setTurn(w.queue, schedule.NewTurn(time.Now()))
	defer setTurn(w.queue, nil)
	for ctx.Err() == nil && blocked.retryAt.IsZero() {
		pool, ok, _ := w.queue.nextPool(time.Now()) // the previous holder may have updated some pools
		if !ok {
			break
		}
		blocked = updateDue(ctx, w, pool)
	}
	return blocked
}

func updateDue(ctx context.Context, w *worker, pool lb.PoolKey) (blocked blocker) {
	checkedAt := time.Now()
	if blocked = w.checkGate(); !blocked.retryAt.IsZero() {
		return blocked
	}
	valid := func() bool { return true }
	if w.cfg.Lease != nil {
		held, leave, err := w.cfg.Lease.Enter(ctx)
		if err != nil {
			return blocker{retryAt: time.Now().Add(w.cfg.Interval), cause: CauseLease, message: err.Error()}
		}
		defer leave()
		valid = held
	}
	if time.Since(checkedAt) > permitTTL {
		if blocked = w.checkGate(); !blocked.retryAt.IsZero() {
			return blocked
		}
	}
	checks, writes := w.selectGroups(time.Now())
	switch {
	case slices.Contains(checks, pool):
		w.checkPools(ctx, checks)
	case len(writes) > 1 && slices.Contains(writes, pool):
		w.updatePipelined(ctx, writes, valid)
	default:
		w.updatePool(ctx, pool, valid)
	}
	return blocker{}
}

func (w *worker) selectGroups(now time.Time) (checks, writes []lb.PoolKey) {
	if w.cfg.LoadBalancers == nil {
		return nil, nil
	}
	checks = w.queue.selectPools(schedule.SelectChecks, now)
	if w.cfg.Pipeline != nil && !w.overlapAfter.After(now) && w.overlap.Limit() > 1 {
		writes = w.queue.selectPools(schedule.SelectWrites, now)
	}
	return checks, writes
}

func (w *worker) updatePool(ctx context.Context, pool lb.PoolKey, valid func() bool) {
	p, ok := w.takeUpdate(pool)
	if !ok {
		return
	}
	w.reportWaits(blocker{cause: CauseBehind}, p.startedAt) // those not in the batch
	p.result = w.cfg.updatePool(ctx, p.target(w.cfg, valid), p.history)
	if p.result.Outcome != diff.Shutdown {
		w.finishAttempt(ctx, p)
	}
	if p.result.Outcome == diff.Written {
		w.setOverlap(ctx, w.overlap.AfterSuccess(1, 0))
	}
}

// setOverlap logs whether writes overlap from now on. The caller holds w.slot.
func (w *worker) setOverlap(ctx context.Context, next schedule.Overlap) {
	before := w.overlap.IsLimited()
	w.overlap = next
	switch limited := next.IsLimited(); {
	case limited == before:
	case limited:
		w.cfg.Log.InfoContext(ctx, "Azure rejected or discarded a pool write while another of its load balancer ran: each write waits for the one before until several have succeeded",
			"loadBalancer", w.id.Name)
	default:
		w.cfg.Log.InfoContext(ctx, "pool writes overlap again", "loadBalancer", w.id.Name)
	}
	w.isSerial.Store(next.IsLimited())
}
