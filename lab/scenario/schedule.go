// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Upper bounds for delays, restated independently. The updater may be faster.
const (
	// maxJoinDelay is how long a change waits for others to join.
	maxJoinDelay = 250 * time.Millisecond
	// The maximum delay of an attempt that nothing blocks, without a lease and with the acquisition
	// of a lease at the end of another turn.
	maxStartDelay       = 10 * time.Second
	maxSharedStartDelay = 30 * time.Second
	// readDelayIntervals is how many intervals a drift read yields to changes.
	readDelayIntervals = 20
)

// changeDueAt returns when the queued change is allowed, ignoring its worker; zero if none is queued. The
// caller holds s.mu.
func (s *Stage) changeDueAt(k *pool) time.Time { return s.allowedAt(k, k.queuedAt) }

// allowedAt returns when work queued at the given time may be attempted; zero if none. The caller
// holds s.mu.
func (s *Stage) allowedAt(k *pool, since time.Time) time.Time {
	p := s.process
	if since.IsZero() || p == nil {
		return time.Time{}
	}
	at := latest(since.Add(maxJoinDelay), latest(k.retryAt, latest(k.rejectedUntil, k.excusedUntil)))
	at = latest(at, s.rateDeadline(k))
	if p.lease != nil && !p.lease.rejectedAt.IsZero() {
		at = latest(at, p.lease.rejectedAt.Add(s.opts.Interval))
	}
	return latest(at, latest(s.gatesOpenAt(k), p.resumeTime))
}

// idleSince returns since when a worker is idle; ok is false if it is busy. The caller holds s.mu.
func (s *Stage) idleSince(id lb.LoadBalancerID) (since time.Time, ok bool) {
	if s.lockedBy[id.Key()] != nil {
		return time.Time{}, false
	}
	since = s.process.unlockTimes[id.Key()]
	for _, k := range s.poolsOf(id) {
		if k.isAttempted() {
			return time.Time{}, false
		}
		since = latest(since, k.endedAt)
	}
	return since, true
}

// poolsOf returns the pools of a load balancer, sorted by name. The caller holds s.mu.
func (s *Stage) poolsOf(id lb.LoadBalancerID) []*pool {
	var pools []*pool
	for _, k := range s.sortedPools() {
		if k.id.LoadBalancer.Key() == id.Key() {
			pools = append(pools, k)
		}
	}
	return pools
}

// overdueChanges returns the overdue changes and postponed reads of an idle worker. The caller holds s.mu.
func (s *Stage) overdueChanges(id lb.LoadBalancerID, now time.Time) []string {
	p := s.process
	if p == nil || p.killed || p.isStopping || p.resumeSignal != nil {
		return nil
	}
	bound := maxStartDelay
	if p.lease != nil {
		if bound = maxSharedStartDelay; s.lease.isBlocked(p) {
			return nil
		}
	}
	free, ok := s.idleSince(id)
	if !ok {
		return nil
	}
	var late []string
	for _, k := range s.poolsOf(id) {
		noun, since := "a change", k.queuedAt
		if since.IsZero() {
			noun, since = "a look that was put off", k.deferredAt
		}
		at := s.allowedAt(k, since)
		if at.IsZero() {
			continue
		}
		if over := now.Sub(latest(at, free)); over > bound {
			late = append(late, fmt.Sprintf("%s of %s waits since %s, is due since %s, and is not attempted at %s", noun, k.id.Name, s.formatTime(since), s.formatTime(latest(at, free)), s.formatTime(now)))
		}
	}
	return late
}

// recordAttempt records the start of a pool's attempt and its violations. The caller holds s.mu.
func (s *Stage) recordAttempt(k *pool) {
	now, id := time.Now(), k.id.LoadBalancer
	s.endBatchReads(id, k)
	k.requeueBatch()
	s.history.expiredAttempts = append(s.history.expiredAttempts, s.overdueChanges(id, now)...)
	if k.retryAt.After(now) && !k.adminQueued {
		s.history.earlyAttempts = append(s.history.earlyAttempts, fmt.Sprintf("%s is tried again at %s, and not at %s", k.id.Name, s.formatTime(now), s.formatTime(k.retryAt)))
	}
	if until := latest(k.parkedUntil, k.rejectedUntil); until.After(now) { // the client would not send it; second line of defense
		s.history.earlyAttempts = append(s.history.earlyAttempts, fmt.Sprintf("an attempt of %s begins at %s, which is parked until %s", k.id.Name, s.formatTime(now), s.formatTime(until)))
	}
	s.history.earlyAttempts = append(s.history.earlyAttempts, s.checkGates(k, now)...)
	passed := s.overtakenChange(k)
	recent := !k.startedAt.IsZero() && now.Sub(k.startedAt) <= readDelayIntervals*s.opts.Interval
	took := k.firstQueuedAt
	if !k.retryAt.IsZero() {
		took = k.retryAt
	}
	if a := k.attempt; a != nil && a.inBatch && !a.firstQueuedAt.IsZero() {
		took = a.firstQueuedAt
	}
	k.attempt, k.lastAnswer = &attempt{added: k.operations, adminQueued: k.adminQueued, dequeuedAt: took}, response{}
	k.adminQueued = false
	if recent { // otherwise a read waited long enough to be first
		k.attempt.overtakenChange = passed
	}
	k.rate.processWrites = s.countWrites(k)
	k.startedAt, k.queuedAt, k.firstQueuedAt, k.deferredAt, k.isReadQueued = now, time.Time{}, time.Time{}, time.Time{}, false
}

// requeueBatch requeues work taken by a void batch. The caller holds the stage's mu.
func (p *pool) requeueBatch() {
	if a := p.attempt; a != nil && a.inBatch {
		p.adminQueued = p.adminQueued || a.adminQueued
	}
}

// overtakenChange returns a change that was due before the worker dequeued the given pools, if that change
// was next in order. The caller holds s.mu.
func (s *Stage) overtakenChange(taken ...*pool) (passed string) {
	// The worker may have dequeued them right after the previous attempt and waited for its locks.
	var picked, own time.Time
	lane, first, admin, look := s.poolsOf(taken[0].id.LoadBalancer), "", false, true
	for _, other := range lane {
		picked = latest(picked, other.endedAt)
	}
	for _, k := range taken {
		if since := k.waitsSince(); own.IsZero() || !since.IsZero() && since.Before(own) {
			first, own = k.id.Name, since
		}
		admin, look = admin || k.adminQueued, look && k.queuedAt.IsZero()
	}
	for _, rival := range lane {
		at := s.changeDueAt(rival)
		if look && picked.Sub(latest(rival.rate.startedAt, rival.startedAt)) < s.opts.Interval {
			continue // attempted or retried recently, and may change all the time
		}
		if slices.Contains(taken, rival) || rival.isReadQueued || at.IsZero() || !at.Add(time.Second).Before(picked) {
			continue
		}
		passed = fmt.Sprintf("a change of %s that is due since %s", rival.id.Name, s.formatTime(at))
		overdue := at.Add(s.opts.Interval + time.Second).Before(picked)
		if overdue && !admin && !own.IsZero() && at.Add(time.Second).Before(own) {
			s.history.orderErrors = append(s.history.orderErrors, fmt.Sprintf("%s is taken, due since %s, before %s", first, s.formatTime(own), passed))
		}
	}
	return passed
}

// waitsSince returns since when a dequeued pool waits for its turn; zero if it is only read. The
// caller holds the stage's mu.
func (p *pool) waitsSince() time.Time {
	switch a := p.attempt; {
	case a != nil && !a.firstQueuedAt.IsZero(): // a void batch
		return a.firstQueuedAt
	case !p.retryAt.IsZero():
		return p.retryAt
	case p.queuedAt.IsZero(): // a read
		return time.Time{}
	}
	return p.firstQueuedAt
}
