// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// startDue starts the due attempts within the limit and returns when the next one is due; zero means
// never.
func (u *Updater) startDue(ctx context.Context, start time.Time, run func(func())) time.Time {
	now := time.Now()
	if !u.hasAllTargets(start, now) {
		return ratelimit.MinTime(start.Add(startupTimeout), now.Add(time.Second))
	}
	recheckAt := u.listScaleSets(ctx, now, run)
	if u.isPlanDue(now) || len(u.dueWorkers(now)) > 0 {
		u.currentPlan() // may find that there is nothing to do
	}
	due := u.dueWorkers(now)
	for _, l := range due {
		if !u.hasCapacity() {
			break
		}
		if mode, allowed := u.reserve(l, due, now); allowed {
			run(func() { u.finishAttempt(ctx, l, u.runAttempt(ctx, l, mode)) })
		}
	}
	return ratelimit.MinTime(u.nextDue(now), recheckAt)
}

// hasAllTargets reports whether all existing pools have a target, or the startup wait is over. Without
// all targets, membership of another managed pool would look like something to remove. Newer pools
// have no members yet.
func (u *Updater) hasAllTargets(start, now time.Time) bool {
	u.mu.Lock()
	over := u.knownTargets == nil
	u.mu.Unlock()
	if over {
		return true
	}
	ids := u.cfg.Cluster.InterfacePools()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if !u.knownTargets[id.Key()] && now.Sub(start) < startupTimeout {
			return false
		}
	}
	u.knownTargets = nil
	return true
}

func (u *Updater) isPlanDue(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.planStale && !u.planDueAt.After(now)
}

func (w *worker) dueTime() time.Time { return ratelimit.MaxTime(w.due, w.notBefore) }

// dueWorkers returns the earliest first.
func (u *Updater) dueWorkers(now time.Time) []*worker {
	u.mu.Lock()
	defer u.mu.Unlock()
	var due []*worker
	for _, l := range u.activeWorkers {
		if !l.running && !l.due.IsZero() && !l.dueTime().After(now) {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b *worker) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) })
	return due
}

func (u *Updater) nextDue(now time.Time) (next time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.planStale {
		next = ratelimit.MaxTime(u.planDueAt, now)
	}
	for _, l := range u.activeWorkers {
		if at := l.dueTime(); !l.running && !l.due.IsZero() && at.After(now) {
			next = ratelimit.MinTime(next, at)
		}
	}
	return next
}

func (u *Updater) hasCapacity() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.runningCount < max(1, u.cfg.Parallel)
}

type readMode int

const (
	readFromList readMode = iota // from a list read for another machine
	readSingle                   // by its own request
	readGroup                    // with its whole resource group
)

// reserve returns false if the worker waits for the throttle gate, the lease, or a running list of its
// resource group.
func (u *Updater) reserve(l *worker, due []*worker, now time.Time) (mode readMode, allowed bool) {
	u.mu.Lock()
	id, until, reason := l.id, u.blockedUntil, u.blockedReason
	behind := !l.hasList && u.listingGroups[l.resourceGroup] != nil
	u.mu.Unlock()
	if behind {
		return 0, false
	}
	if until.After(now) {
		return 0, u.deferWorker(l, until, reason)
	}
	if until, reason := u.cfg.Azure.EnterResource(id); !until.IsZero() {
		return 0, u.deferWorker(l, until, reason)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.workers[l.key] != l || l.due.IsZero() { // removed in the meantime
		return 0, false
	}
	switch {
	case l.resourceGroup == "", l.hasList:
	case l.hasInterface && !slices.ContainsFunc(due, func(o *worker) bool { return o != l && o.resourceGroup == l.resourceGroup && !o.running && !o.hasList }):
		mode = readSingle
	default:
		mode = readGroup
		u.listingGroups[l.resourceGroup] = l
	}
	u.runningCount++
	l.running, l.due = true, time.Time{}
	if l.hasChanges {
		l.hasChanges, l.scaleSetState.written, l.scaleSetState.hadConflict = false, nil, false
	}
	for _, m := range l.machines {
		if m.blocked {
			m.blocked, m.reason = false, ""
			u.setState(m, stateWorking)
		}
		if m.state != stateDone {
			m.observed = ""
		}
	}
	return mode, true
}

// deferWorker is not a failure; a long wait is reported.
func (u *Updater) deferWorker(l *worker, until time.Time, reason string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.workers[l.key] == l { // not removed in the meantime
		u.deferWorkerLocked(l, until, reason, time.Now())
	}
	return false
}

// deferWorkerLocked requires u.mu.
func (u *Updater) deferWorkerLocked(l *worker, until time.Time, reason string, now time.Time) {
	until = ratelimit.MaxTime(until, now.Add(10*time.Millisecond)) // retry, but not immediately
	l.due = until
	u.activeWorkers[l.key] = l
	for _, m := range l.machines {
		if m.state == stateWorking && reason != "" && until.Sub(now) >= minReportedDelay || m.blocked {
			m.reason, m.blocked, m.unusable = reason, true, false
			u.setState(m, stateWaiting)
		}
	}
}

func (u *Updater) finishAttempt(ctx context.Context, l *worker, r result) {
	u.mu.Lock()
	l.running = false
	u.runningCount--
	if u.listingGroups[l.resourceGroup] == l {
		delete(u.listingGroups, l.resourceGroup)
	}
	if ctx.Err() == nil {
		u.storeResult(l, r, time.Now())
	}
	u.mu.Unlock()
	u.notifyIdle(ctx)
	u.signal()
}

// storeResult requires u.mu.
func (u *Updater) storeResult(l *worker, r result, now time.Time) {
	l.notBefore, l.lastReadAt = r.notBefore, now
	if r.hasWrites {
		l.lastWriteAt = now
	}
	if r.inSync {
		l.modelState = r.plan.desiredModels(l)
	}
	for key, v := range r.results {
		if m := l.machines[key]; m != nil && m.desired == r.plan.desiredState(m.Machine) && !r.readAt.Before(m.requestedAt) {
			m.setResult(v)
			u.setState(m, v.state)
		}
	}
	if r.blocksAll && r.blockedUntil.After(u.blockedUntil) {
		u.blockedUntil, u.blockedReason = r.blockedUntil, r.blockedReason
	}
	working, waiting := false, false
	for _, m := range l.machines {
		working, waiting = working || m.state == stateWorking, waiting || m.state == stateWaiting
		u.removeIfUnused(m)
	}
	switch {
	case len(l.machines) == 0:
	case !r.blockedUntil.IsZero():
		u.deferWorkerLocked(l, ratelimit.MaxTime(r.blockedUntil, l.due), r.blockedReason, now)
	case r.retryNow:
		u.scheduleAt(l, now)
	case working:
		u.scheduleAt(l, now.Add(batchDelay))
	case waiting:
		l.waitCount++
		u.scheduleAt(l, now.Add(pollBackoff.DelayAfter(l.waitCount)))
	default:
		l.waitCount = 0
	}
	u.unschedule(l)
}

func (m *machine) setResult(v machineResult) {
	m.forceRead, m.blocked, m.reason, m.unusable, m.err, m.notified = false, false, v.reason, v.unusable, v.err, nil
	switch v.state {
	case stateDone:
		m.observed = m.desired
	case stateFailed:
		m.notified = map[lb.PoolKey]bool{}
	}
}
