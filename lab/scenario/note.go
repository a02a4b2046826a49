// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"time"

	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// note keeps a report, and what it says of its pool. A machine that is suspended between the
// decision and the word says it late: thereWhenAsked. The caller holds s.mu.
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
		// Where admin states failed, the change that went along has not been attempted.
		// A look, or admin states alone, begin no pace.
		if seen.passed = k.attempt.passed; !postponed && !r.ChangedAt.IsZero() && (!r.Admin || !adminFailed) {
			s.paces(k, k.attempt.added, r.Admin || r.Outcome == poolwrite.Stale)
		}
		if !k.attempt.over {
			k.ended = time.Now()
		}
	}
	patience := later(k.patience, k.excuse)
	if r.Admin && !r.AdminRetryAt.IsZero() { // else it has dropped what it took along, too
		seen.row, seen.failed = k.row, k.failed
		k.keepsAt(r)
		patience = later(patience, k.again)
	} else {
		k.attempt, k.admin = nil, k.admin || !r.AdminRetryAt.IsZero()
		seen.row, seen.failed = k.count(r, seen.newest)
		k.stands(r, seen, s.opts.Interval)
		if b != nil { // else the lanes forget the pool with its BackendPool
			k.goesOn(r)
		}
		k.isExcused(r)
	}
	if r.Settled && !k.changed.IsZero() && s.unlevel(k) == "" {
		s.journal.lags, k.changed = append(s.journal.lags, time.Since(k.changed)), time.Time{}
	}
	seen.bound = later(later(r.At.Add(s.opts.Interval), r.NextEligibleAt), patience)
	s.tell(k, r)
	s.journal.reports = append(s.journal.reports, seen)
}

// count keeps how often the pool's last change failed, and how often in a row; it returns
// both as of this attempt. The caller holds the stage's mu.
func (k *pool) count(r poolupdate.Report, newest bool) (row, failed int) {
	if r.Drift && k.surrender == "" { // a look is like a change, unless the last was given up
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
	if ends || !r.Requeued {
		k.row = 0
	}
	if !r.Requeued {
		k.surrender = surrenderTo(r)
	}
	return row, failed
}

// putOff reports whether a look was: that is no change that waits.
func putOff(r poolupdate.Report) bool { return r.Drift && r.Outcome == poolwrite.Postponed }

// stands keeps how the pool is after an attempt, and from when on it may be tried again. The
// caller holds the stage's mu.
func (k *pool) stands(r poolupdate.Report, seen report, interval time.Duration) {
	k.level = r.Settled && !seen.serviceGone
	k.givenUp = seen.newest && !r.Settled && (!r.Requeued || putOff(r) && k.givenUp)
	k.parkedUntil = r.NextEligibleAt
	switch {
	case !r.Requeued:
		k.again = time.Time{}
	case r.Outcome == poolwrite.Retriable:
		k.again = k.begun.Add(interval)
	}
	if r.Settled && !k.driftedAt.After(k.last.at) {
		k.drifted = false
	}
}

// goesOn keeps what waits for the pool after an attempt. The caller holds the stage's mu.
func (k *pool) goesOn(r poolupdate.Report) {
	switch {
	case putOff(r):
		k.putOff = time.Now()
	case r.Requeued, k.admin:
		k.looks = standsBack(r) && !k.admin && (k.looks || k.waits.IsZero())
		k.queues()
	}
}

// standsBack reports whether what waits after an attempt is the first look of a process: it was
// postponed, and is no change by that.
func standsBack(r poolupdate.Report) bool {
	return r.Outcome == poolwrite.Postponed && r.ChangedAt.IsZero() && r.RetriesUsed == 0
}

// isExcused keeps until when the pool need not be level. The caller holds the stage's mu.
func (k *pool) isExcused(r poolupdate.Report) {
	if r.Settled {
		return
	}
	k.trouble = later(k.trouble, later(later(r.RetryAt, r.AdminRetryAt), time.Now()))
	if r.Fault != nil { // nobody looks before the time that Azure named
		k.trouble = later(k.trouble, r.Fault.RetryAt)
	}
}

// surrenderTo says what a change is given up for with a report that no other attempt
// follows; empty if it is not.
func surrenderTo(r poolupdate.Report) string {
	if r.Fault == nil || r.Outcome != poolwrite.Retriable && r.Outcome != poolwrite.Terminal {
		return ""
	}
	return string(r.Outcome) + " " + r.Fault.Code
}
