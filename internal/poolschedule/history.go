// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolwrite"
)

// History is what is known of a pool between attempts.
type History struct {
	LastAttempt time.Time
	// LastChange is the start of the last attempt with a membership change; the pool is paced from
	// then on.
	LastChange time.Time
	// HoldUntil is set while one of Weir's own dependencies is not ready.
	HoldUntil time.Time
	Postponed int
	// HandedAt is when members were handed over to the machine updater, zero if not pending.
	// Completed machines or a change then end HoldUntil early.
	HandedAt time.Time
	// Brought is the fingerprint of the last handover, or zero.
	Brought uint64
	// Unusable is true if machines cannot join a pool that is otherwise in sync.
	Unusable bool
	Writes   poolwrite.Memory
	// Trouble is since when the pool is out of sync, or may become so, with nothing queued; zero if
	// not.
	Trouble time.Time
	// NotBefore is the latest Retry-After. It outlives the operation.
	NotBefore time.Time
	// GaveUp is the error for which the last change was given up, or empty.
	GaveUp string
	// Apart excludes the pool from batched updates after a rejection.
	Apart bool
	// Unread is true if the pool needs a read of its own.
	Unread bool
	// Owed is true after an uncounted write that may have landed: if the pool is then in sync, its
	// Service has to be notified.
	Owed bool
	// OwedShown is what a pool of network interfaces showed before that write.
	OwedShown uint64
	lastAdmin time.Time
}

// Remember returns the history after an attempt. refused is true if this pool caused the rejection
// of a batch.
func (h History) Remember(outcome poolwrite.Outcome, f *fault.Fault, cause Cause, start, now time.Time, interval time.Duration) (next History, refused bool) {
	if outcome == poolwrite.Postponed {
		h.Postponed++
		h.HoldUntil = now.Add(backoff.Doubling{First: time.Second, Max: interval}.After(h.Postponed))
		return h, refused
	}
	switch outcome {
	case poolwrite.Written, poolwrite.Unchanged:
		h.Apart = false
	case poolwrite.Terminal, poolwrite.Refused:
		if f != nil && f.Exhausted() {
			break // not caused by the pool
		}
		h.Apart, refused = true, h.Apart
	}
	h.Postponed, h.HoldUntil, h.HandedAt, h.Unread = 0, time.Time{}, time.Time{}, false
	if cause.Member {
		h.LastAttempt = start
	}
	if cause.Admin {
		h.lastAdmin = start
	}
	if cause.change {
		h.LastChange = start
	}
	return h, refused
}

// Owes records whether an attempt completed a delegated write: an attempt that finds a pool in sync
// after it was not counts as the write.
func (h History) Owes(r *poolwrite.Result) History {
	done := r.Directed() && r.Handed == nil
	if h.Owed && done && (r.HandOver == nil || r.Shows() != h.OwedShown) {
		r.Outcome, r.Members = poolwrite.Written, true
	}
	if !h.Owed {
		h.OwedShown = r.Shows()
	}
	h.Owed = (h.Owed || r.Brought && r.Members) && !done
	return h
}

// Brings records what was handed over for a pool.
func (h History) Brings(r poolwrite.Result, now time.Time) History {
	if r.Brought {
		h.Brought, h.Unusable = r.HandOver.Fingerprint(), len(r.Unusable) > 0
	}
	if r.Handed == nil {
		return h
	}
	return h.Hands(now, r.Handed.For)
}

// handedGap is the shortest time between a handover and the next attempt, so that machines that
// finish one by one share an attempt.
const handedGap = time.Second

// Hands delays the pool while its machines are written. wait is zero if no completion will be
// signaled.
func (h History) Hands(now time.Time, wait time.Duration) History {
	if wait > 0 {
		h.Postponed, h.HoldUntil, h.HandedAt = 0, now.Add(wait), now
	}
	return h
}

// Wake ends such a wait, and reports whether there was one.
func (h History) Wake() (next History, woken bool) {
	at := h.HandedAt.Add(handedGap)
	if h.HandedAt.IsZero() || !h.HoldUntil.After(at) {
		return h, false
	}
	h.HoldUntil = at
	return h, true
}

// Upcoming returns at, but not before now, for display: an attempt longer than the interval is
// followed by the next one at once. Zero is never.
func Upcoming(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return Later(at, now)
}
