// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"hash/fnv"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/ratelimit"
)

// History is what is known of a pool between attempts.
type History struct {
	LastAttempt time.Time
	// LastChange is the start of the last attempt with a membership change; the pool is paced from then on.
	LastChange time.Time
	// WaitUntil is set while one of Weir's own dependencies is not ready.
	WaitUntil  time.Time
	DelayCount int
	// TargetSetAt is zero if no handover is pending. Completed machines or a change end WaitUntil early.
	TargetSetAt time.Time
	TargetHash  uint64
	HasUnusable bool
	Writes      diff.Memory
	// ErrorSince is since when the pool is, or may become, out of sync with nothing queued; zero if not.
	ErrorSince time.Time
	// NotBefore is the latest Retry-After. It outlives the operation.
	NotBefore  time.Time
	FinalError string
	// LastFailure is the error of the last attempt; empty if it had none.
	LastFailure string
	MustBeAlone bool
	NeedsRead   bool
	// UncountedWrite may have landed: if the pool is then in sync, its Service has to be notified.
	UncountedWrite bool
	UncountedHash  uint64
	// For an interval after LastAdmin, the pool's admin states rank with its other changes.
	LastAdmin time.Time
}

// AfterAttempt returns the history after an attempt.
func (h History) AfterAttempt(outcome diff.Outcome, f *armerror.Fault, cause Cause, start, now time.Time, interval time.Duration) History {
	if outcome == diff.Postponed {
		h.DelayCount++
		h.WaitUntil = now.Add(ratelimit.Exponential{Initial: time.Second, Max: interval}.DelayAfter(h.DelayCount))
		return h
	}
	switch outcome {
	case diff.Written, diff.Unchanged:
		h.MustBeAlone = false
	case diff.Terminal, diff.Rejected:
		if f != nil && f.HasExhaustedRetries() {
			break // not caused by the pool
		}
		h.MustBeAlone = true
	}
	h.DelayCount, h.WaitUntil, h.TargetSetAt, h.NeedsRead = 0, time.Time{}, time.Time{}, false
	h.LastFailure = diff.ErrorName(f)
	if cause.Member {
		h.LastAttempt = start
	}
	if cause.Admin {
		h.LastAdmin = start
	}
	if cause.hasChange {
		h.LastChange = start
	}
	return h
}

// AfterMachineWrite reports the write of machines as the attempt's own when the pool is first found in sync after it:
// another goroutine has sent that write.
func (h History) AfterMachineWrite(r *diff.Result) History {
	done := r.StatesInSync() && r.MemberProgress == nil
	if h.UncountedWrite && done && (r.MachineTarget == nil || r.InterfaceHash != h.UncountedHash) {
		r.Outcome, r.ChangesMembers = diff.Written, true
	}
	if !h.UncountedWrite {
		h.UncountedHash = r.InterfaceHash
	}
	h.UncountedWrite = (h.UncountedWrite || r.TargetSet && r.ChangesMembers) && !done
	return h
}

// AfterTarget records what was handed over for a pool, and waits for its machines if their end will be signaled.
func (h History) AfterTarget(r diff.Result, now time.Time) History {
	if r.TargetSet {
		h.TargetHash, h.HasUnusable = r.MachineTarget.Fingerprint(), len(r.Unusable) > 0
	}
	if r.MemberProgress != nil && r.MemberProgress.WaitFor > 0 {
		h.DelayCount, h.WaitUntil, h.TargetSetAt = 0, now.Add(r.MemberProgress.WaitFor), now
	}
	return h
}

// Machines that finish one by one within minMachineWait share an attempt.
const minMachineWait = time.Second

// EndMachineWait ends a wait for machines, and reports whether there was one.
func (h History) EndMachineWait() (next History, woken bool) {
	at := h.TargetSetAt.Add(minMachineWait)
	if h.TargetSetAt.IsZero() || !h.WaitUntil.After(at) {
		return h, false
	}
	h.WaitUntil = at
	return h, true
}

// NotBeforeNow returns at, or now if it has passed. It is for display: after an attempt that took longer than the
// interval, the next one follows at once.
func NotBeforeNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return ratelimit.MaxTime(at, now)
}

// NextResync returns the first resync after now; a period of 0 is never. One read serves all pools of a load balancer,
// at a phase derived from its name, so that restarts do not matter.
func NextResync(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return time.Time{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool.LoadBalancer())) // never fails
	phase := time.Duration(h.Sum64() % uint64(period))
	begin := now.Truncate(period).Add(phase)
	if !begin.After(now) {
		begin = begin.Add(period)
	}
	// Relative to now, so that a clock set back delays no check.
	return now.Add(begin.Sub(now))
}

const firstCheckDelay = time.Minute

// nextCheck returns the next resync, or an earlier check of a pool in trouble, after one, two, four minutes and so on.
func nextCheck(pool lb.PoolKey, now time.Time, period time.Duration, failing time.Time) time.Time {
	own := NextResync(pool, now, period)
	if failing.IsZero() {
		return own
	}
	for wait, at := firstCheckDelay, failing; wait < period; wait *= 2 {
		if at = at.Add(wait); at.After(now) {
			return ratelimit.MinTime(own, at)
		}
	}
	return own
}

// NextCheckAt returns the next check. A pool with a lost write is always checked once that can no longer land.
func (h History) NextCheckAt(pool lb.PoolKey, now time.Time, period time.Duration) time.Time {
	last := h.Writes.PendingSince.Add(diff.PendingWriteTTL)
	if period <= 0 && !h.Writes.PendingSince.IsZero() && last.After(now) {
		return last
	}
	return nextCheck(pool, now, period, h.ErrorSince)
}

// UpdateErrorSince returns since when a change is given up or a lost write may land. Giving up again restarts it.
func UpdateErrorSince(before time.Time, outcome diff.Outcome, failing, look bool, now time.Time) time.Time {
	switch {
	case outcome == diff.Postponed, failing && look && !before.IsZero():
		return before
	case !failing:
		return time.Time{}
	}
	return now
}

// Checks of a load balancer share a read: they wait until none has come for CheckDebounce, but at most
// MaxCheckDebounce. A starting process discovers its pools one by one.
const (
	CheckDebounce    = time.Second
	MaxCheckDebounce = 10 * time.Second
)

// Debouncer debounces checks.
type Debouncer struct{ since, last time.Time }

// AddCheck records a check.
func (d *Debouncer) AddCheck(now time.Time) {
	if now.Sub(d.last) > CheckDebounce {
		d.since = now
	}
	d.last = now
}

// ReadyAt returns when the debouncing ends; zero is now.
func (d Debouncer) ReadyAt() time.Time {
	if d.last.Equal(d.since) {
		return time.Time{} // all came at once
	}
	return ratelimit.MinTime(d.last.Add(CheckDebounce), d.since.Add(MaxCheckDebounce))
}
