// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolwrite"
)

// history is what a lane remembers of a pool.
type history struct {
	passes      passes
	lastAttempt time.Time
	// holdUntil is set while something of our own was not ready.
	holdUntil time.Time
	postponed int
	writes    poolwrite.Memory
	// trouble is since when the pool is not as it has to be, and nothing waits, or may not stay
	// so; zero if neither.
	trouble time.Time
	// notBefore is the latest time that a Retry-After for this pool named. It outlives
	// the operation that met it.
	notBefore time.Time
	// gaveUp is what the pool's last change was given up for; empty if it was not.
	gaveUp string
	// apart is true for a pool that is to have no part in writes of the whole load balancer:
	// one was refused that it was in, or its own was.
	apart bool
	// owed is true after such a write that was nobody's attempt and may have landed: a pool that
	// is found level then was written, and whoever waits for that has not heard of it.
	owed bool
	// lastAdmin is when the last attempt began that a change of admin states caused.
	lastAdmin time.Time
}

// remember brings a pool's history up to date after an attempt that was made for a cause. refused is
// true if the pool was refused by itself after a write of the load balancer was: it is what that was
// refused for. A pass is spent by fresh work alone: a retry has waited its interval already.
func (h history) remember(outcome poolwrite.Outcome, f *fault.Fault, by cause, start, now time.Time, interval time.Duration) (next history, refused bool) {
	if outcome == poolwrite.Postponed {
		h.postponed++
		h.holdUntil = now.Add(backoff.Doubling{First: time.Second, Max: interval}.After(h.postponed))
		return h, refused
	}
	switch outcome {
	case poolwrite.Written, poolwrite.Unchanged:
		h.apart = false
	case poolwrite.Terminal, poolwrite.Refused:
		if f != nil && f.Exhausted() {
			break // that is nothing about the pool
		}
		h.apart, refused = true, h.apart
	}
	h.postponed, h.holdUntil = 0, time.Time{}
	if by.member {
		h.lastAttempt = start
	}
	if by.admin {
		h.lastAdmin = start
	}
	if by.fresh {
		h.passes = h.passes.take(start, interval)
	}
	return h, refused
}
