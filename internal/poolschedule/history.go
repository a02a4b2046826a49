// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolwrite"
)

// History is what a lane remembers of a pool.
type History struct {
	LastAttempt time.Time
	// LastChange is when the last attempt began that was made for a change of the membership, or
	// took one along: from then on the pool is kept to a pace.
	LastChange time.Time
	// HoldUntil is set while something of our own was not ready.
	HoldUntil time.Time
	Postponed int
	// HandedAt is when the members were handed over that others write: as long as HoldUntil waits
	// for these, a word of them ends it, or a change. It is zero if none are.
	HandedAt time.Time
	// Brought is the fingerprint of what was handed over last; zero if nothing was.
	Brought uint64
	// Unusable is true if the pool is level without machines that cannot join it: a word of these has it
	// looked at.
	Unusable bool
	Writes   poolwrite.Memory
	// Trouble is since when the pool is not as it has to be, and nothing waits, or may not stay
	// so; zero if neither.
	Trouble time.Time
	// NotBefore is the latest time that a Retry-After for this pool named. It outlives
	// the operation that met it.
	NotBefore time.Time
	// GaveUp is what the pool's last change was given up for; empty if it was not.
	GaveUp string
	// Apart is true for a pool that is to have no part in writes of the whole load balancer:
	// one was refused that it was in, or its own was.
	Apart bool
	// Unread is true for a pool of which a look at several did not tell enough: it is read by itself next.
	Unread bool
	// Owed is true after such a write that was nobody's attempt and may have landed: a pool that
	// is found level then was written, and whoever waits for that has not heard of it.
	Owed bool
	// OwedShown is what a pool of network interfaces showed when its members began to be owed.
	OwedShown uint64
	// lastAdmin is when the last attempt began that a change of admin states caused.
	lastAdmin time.Time
}

// Remember brings a pool's history up to date after an attempt that was made for a cause. refused is
// true if the pool was refused by itself after a write of the load balancer was: it is what that was
// refused for.
func (h History) Remember(outcome poolwrite.Outcome, f *fault.Fault, by Cause, start, now time.Time, interval time.Duration) (next History, refused bool) {
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
			break // that is nothing about the pool
		}
		h.Apart, refused = true, h.Apart
	}
	h.Postponed, h.HoldUntil, h.HandedAt, h.Unread = 0, time.Time{}, time.Time{}, false
	if by.Member {
		h.LastAttempt = start
	}
	if by.Admin {
		h.lastAdmin = start
	}
	if by.change {
		h.LastChange = start
	}
	return h, refused
}

// Owes takes in whether an attempt brought what others write to its end: one that finds a pool as it has
// to be, after it was not, has written it.
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

// Brings takes in what was handed over of a pool.
func (h History) Brings(r poolwrite.Result, now time.Time) History {
	if r.Brought {
		h.Brought, h.Unusable = r.HandOver.Fingerprint(), len(r.Unusable) > 0
	}
	if r.Handed == nil {
		return h
	}
	return h.Hands(now, r.Handed.For)
}

// handedGap is how long after members were handed over the pool is attempted again at the earliest:
// machines that are done one after the other share an attempt.
const handedGap = time.Second

// Hands has a pool left alone while others write its members; for is zero where nobody will say that
// they are done.
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

// Upcoming is a time that is told to people: an attempt that took longer than the interval is followed
// by the next one at once, not in the past. Zero is never.
func Upcoming(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return Later(at, now)
}
