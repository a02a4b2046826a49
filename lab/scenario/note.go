// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"time"

	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// note records a report and the state of its pool. thereWhenAsked is for a machine that was
// suspended between decision and report. The caller holds s.mu.
func (p *process) note(r poolupdate.Report, thereWhenAsked bool) {
	s := p.stage
	k, b := s.pools[r.Pool.Key()], s.cluster.byRef(r.Ref)
	seen := report{Report: r, last: k.last, surrender: k.surrender, before: maps.Clone(k.words), newest: k.attempt == nil || k.attempt.added == k.added}
	if b != nil {
		seen.serviceGone, seen.held = (p.seen.gone(b) || b.deleting) && !thereWhenAsked, b.paused
	}
	if k.attempt != nil {
		s.answers(k)
		postponed, adminFailed := r.Outcome == poolwrite.Postponed, !r.AdminRetryAt.IsZero()
		k.backsOff = postponed || adminFailed
		// If admin states failed, the change taken along was not attempted. Drift reads and admin
		// states alone do not start a pace.
		if seen.passed = k.attempt.passed; !postponed && !r.ChangedAt.IsZero() && (!r.Admin || !adminFailed) {
			s.paces(k, k.attempt.added, r.Admin || r.Outcome == poolwrite.Stale)
		}
		if !k.attempt.over {
			k.ended = time.Now()
		}
	}
	patience := later(k.patience, k.excuse)
	if r.Admin && !r.AdminRetryAt.IsZero() { // otherwise it also dropped what it took along
		seen.row, seen.failed = k.row, k.failed
		k.keepsAt(r)
		patience = later(patience, k.again)
	} else {
		k.attempt, k.admin = nil, k.admin || !r.AdminRetryAt.IsZero()
		seen.row, seen.failed = k.count(r, seen.newest)
		k.stands(r, seen, s.opts.Interval)
		if b != nil { // otherwise the updater drops the pool with its BackendPool
			k.goesOn(r)
		}
		k.isExcused(r)
	}
	if r.InSync && !k.changed.IsZero() && s.unlevel(k) == "" {
		s.journal.lags, k.changed = append(s.journal.lags, time.Since(k.changed)), time.Time{}
	}
	seen.bound = later(later(r.At.Add(s.opts.Interval), r.NextEligibleAt), patience)
	s.tell(k, r)
	s.journal.reports = append(s.journal.reports, seen)
}

// count updates the failures and consecutive failures of the pool's last change and returns both,
// including this attempt. The caller holds the stage's mu.
func (k *pool) count(r poolupdate.Report, newest bool) (row, failed int) {
	if r.Resync && k.surrender == "" { // a drift read counts like a change unless the last change was given up
		k.failed = 0
	}
	if r.Outcome == poolwrite.Retriable {
		k.row++
		if newest {
			k.failed++
		}
	}
	row, failed = k.row, k.failed
	ends := r.Outcome != poolwrite.Retriable && r.Outcome != poolwrite.Postponed
	if ends {
		k.failed = 0
	}
	if ends || !r.WillRetry {
		k.row = 0
	}
	if !r.WillRetry {
		k.surrender = surrenderTo(r)
	}
	return row, failed
}

// putOff reports whether a drift read was postponed.
func putOff(r poolupdate.Report) bool { return r.Resync && r.Outcome == poolwrite.Postponed }

// stands records the state of the pool after an attempt and its next allowed attempt. The caller
// holds the stage's mu.
func (k *pool) stands(r poolupdate.Report, seen report, interval time.Duration) {
	k.level = r.InSync && !seen.serviceGone
	k.givenUp = seen.newest && !r.InSync && (!r.WillRetry || putOff(r) && k.givenUp)
	k.parkedUntil = r.NextEligibleAt
	switch {
	case !r.WillRetry:
		k.again = time.Time{}
	case r.Outcome == poolwrite.Retriable:
		k.again = k.begun.Add(interval)
	}
	if r.InSync && !k.driftedAt.After(k.last.at) {
		k.drifted = false
	}
}

// goesOn records what is queued for the pool after an attempt. The caller holds the stage's mu.
func (k *pool) goesOn(r poolupdate.Report) {
	switch {
	case putOff(r):
		k.putOff = time.Now()
	case r.WillRetry, k.admin:
		k.looks = standsBack(r) && !k.admin && (k.looks || k.waits.IsZero())
		k.queues()
	}
}

// standsBack reports whether the queued work is a process's postponed first read, which is not a
// change.
func standsBack(r poolupdate.Report) bool {
	return r.Outcome == poolwrite.Postponed && r.ChangedAt.IsZero() && r.RetriesUsed == 0
}

// isExcused extends the time by which the pool must be in sync. The caller holds the stage's mu.
func (k *pool) isExcused(r poolupdate.Report) {
	if r.InSync {
		return
	}
	k.trouble = later(k.trouble, later(later(r.RetryAt, r.AdminRetryAt), time.Now()))
	if r.Fault != nil { // no read before Azure's Retry-After
		k.trouble = later(k.trouble, r.Fault.RetryAt)
	}
}

// surrenderTo returns why a change was given up, or "" if another attempt follows.
func surrenderTo(r poolupdate.Report) string {
	if r.Fault == nil || r.Outcome != poolwrite.Retriable && r.Outcome != poolwrite.Terminal {
		return ""
	}
	return string(r.Outcome) + " " + r.Fault.Code
}
