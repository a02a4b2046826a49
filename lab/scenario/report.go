// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"time"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// recordReport records a report and the state of its pool. thereWhenAsked is for a machine that was
// suspended between decision and report. The caller holds s.mu.
func (p *process) recordReport(r updater.Report, thereWhenAsked bool) {
	s := p.stage
	k, b := s.pools[r.Pool.Key()], s.cluster.byRef(r.Ref)
	seen := attemptReport{Report: r, last: k.lastAnswer, failureReason: k.failureReason, previousEvents: maps.Clone(k.lastEvents), newest: k.attempt == nil || k.attempt.added == k.operations}
	if b != nil {
		seen.serviceDeleted, seen.isPaused = (p.cache.isServiceMissing(b) || b.isDeleting) && !thereWhenAsked, b.isPaused
	}
	if k.attempt != nil {
		s.recordAttemptEnd(k)
		postponed, adminFailed := r.Outcome == diff.Postponed, !r.AdminRetryAt.IsZero()
		k.inBackoff = postponed || adminFailed
		// If admin states failed, the change taken along was not attempted. Drift reads and admin
		// states alone do not start a pace.
		if seen.overtakenChange = k.attempt.overtakenChange; !postponed && !r.ChangedAt.IsZero() && (!r.Admin || !adminFailed) {
			s.checkRate(k, k.attempt.added, r.Admin || r.Outcome == diff.Stale)
		}
		if !k.attempt.isOver {
			k.endedAt = time.Now()
		}
	}
	timeout := latest(k.rejectedUntil, k.excusedUntil)
	if r.Admin && !r.AdminRetryAt.IsZero() { // otherwise it also dropped what it took along
		seen.consecutiveFailures, seen.failed = k.consecutiveFailures, k.failures
		k.keepAdminRetry(r)
		timeout = latest(timeout, k.retryAt)
	} else {
		k.attempt, k.adminQueued = nil, k.adminQueued || !r.AdminRetryAt.IsZero()
		seen.consecutiveFailures, seen.failed = k.countFailures(r, seen.newest)
		k.recordState(r, seen, s.opts.Interval)
		if b != nil { // otherwise the updater drops the pool with its BackendPool
			k.recordQueued(r)
		}
		k.extendDeadline(r)
	}
	if r.InSync && !k.changedAt.IsZero() && s.outOfSyncReason(k) == "" {
		s.history.delays, k.changedAt = append(s.history.delays, time.Since(k.changedAt)), time.Time{}
	}
	seen.retryDeadline = latest(latest(r.At.Add(s.opts.Interval), r.NextEligibleAt), timeout)
	s.recordEvents(k, r)
	s.history.reports = append(s.history.reports, seen)
}

// countFailures updates the failures and consecutive failures of the pool's last change and returns both,
// including this attempt. The caller holds the stage's mu.
func (p *pool) countFailures(r updater.Report, newest bool) (row, failed int) {
	if r.Resync && p.failureReason == "" { // a drift read counts like a change unless the last change was given up
		p.failures = 0
	}
	if r.Outcome == diff.Retriable {
		p.consecutiveFailures++
		if newest {
			p.failures++
		}
	}
	row, failed = p.consecutiveFailures, p.failures
	ends := r.Outcome != diff.Retriable && r.Outcome != diff.Postponed
	if ends {
		p.failures = 0
	}
	if ends || !r.WillRetry {
		p.consecutiveFailures = 0
	}
	if !r.WillRetry {
		p.failureReason = failureReason(r)
	}
	return row, failed
}

// isDeferred reports whether a drift read was postponed.
func isDeferred(r updater.Report) bool { return r.Resync && r.Outcome == diff.Postponed }

// recordState records the state of the pool after an attempt and its next allowed attempt. The caller
// holds the stage's mu.
func (p *pool) recordState(r updater.Report, seen attemptReport, interval time.Duration) {
	p.inSync = r.InSync && !seen.serviceDeleted
	p.gaveUp = seen.newest && !r.InSync && (!r.WillRetry || isDeferred(r) && p.gaveUp)
	p.parkedUntil = r.NextEligibleAt
	switch {
	case !r.WillRetry:
		p.retryAt = time.Time{}
	case r.Outcome == diff.Retriable:
		p.retryAt = p.startedAt.Add(interval)
	}
	if r.InSync && !p.driftedAt.After(p.lastAnswer.at) {
		p.isDrifted = false
	}
}

// recordQueued records what is queued for the pool after an attempt. The caller holds the stage's mu.
func (p *pool) recordQueued(r updater.Report) {
	switch {
	case isDeferred(r):
		p.deferredAt = time.Now()
	case r.WillRetry, p.adminQueued:
		p.isReadQueued = isDeferredFirstRead(r) && !p.adminQueued && (p.isReadQueued || p.queuedAt.IsZero())
		p.queueChange()
	}
}

// isDeferredFirstRead reports whether the queued work is a process's postponed first read, which is not a
// change.
func isDeferredFirstRead(r updater.Report) bool {
	return r.Outcome == diff.Postponed && r.ChangedAt.IsZero() && r.RetriesUsed == 0
}

// extendDeadline extends the time by which the pool must be in sync. The caller holds the stage's mu.
func (p *pool) extendDeadline(r updater.Report) {
	if r.InSync {
		return
	}
	p.faultEnd = latest(p.faultEnd, latest(latest(r.RetryAt, r.AdminRetryAt), time.Now()))
	if r.Fault != nil { // no read before Azure's Retry-After
		p.faultEnd = latest(p.faultEnd, r.Fault.RetryAt)
	}
}

// failureReason returns why a change was given up, or "" if another attempt follows.
func failureReason(r updater.Report) string {
	if r.Fault == nil || r.Outcome != diff.Retriable && r.Outcome != diff.Terminal {
		return ""
	}
	return string(r.Outcome) + " " + r.Fault.Code
}
