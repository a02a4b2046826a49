// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"weir.dev/weir/internal/armerror"
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
	NotBefore         time.Time
	FinalError        string
	ExcludedFromBatch bool
	NeedsRead         bool
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
		h.ExcludedFromBatch = false
	case diff.Terminal, diff.Rejected:
		if f != nil && f.HasExhaustedRetries() {
			break // not caused by the pool
		}
		h.ExcludedFromBatch = true
	}
	h.DelayCount, h.WaitUntil, h.TargetSetAt, h.NeedsRead = 0, time.Time{}, time.Time{}, false
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

// AfterMachineWrite counts an attempt that finds a pool in sync after it was not as the delegated write.
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

// AfterTarget records what was handed over for a pool.
func (h History) AfterTarget(r diff.Result, now time.Time) History {
	if r.TargetSet {
		h.TargetHash, h.HasUnusable = r.MachineTarget.Fingerprint(), len(r.Unusable) > 0
	}
	if r.MemberProgress == nil {
		return h
	}
	return h.WaitForMachines(now, r.MemberProgress.WaitFor)
}

// minMachineWait lets machines that finish one by one share an attempt.
const minMachineWait = time.Second

// WaitForMachines delays the pool while its machines are written; not if no completion will be signaled.
func (h History) WaitForMachines(now time.Time, wait time.Duration) History {
	if wait > 0 {
		h.DelayCount, h.WaitUntil, h.TargetSetAt = 0, now.Add(wait), now
	}
	return h
}

// EndMachineWait ends such a wait, and reports whether there was one.
func (h History) EndMachineWait() (next History, woken bool) {
	at := h.TargetSetAt.Add(minMachineWait)
	if h.TargetSetAt.IsZero() || !h.WaitUntil.After(at) {
		return h, false
	}
	h.WaitUntil = at
	return h, true
}

// NotBeforeNow is for display: an attempt longer than the interval is followed by the next one at once.
func NotBeforeNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return ratelimit.MaxTime(at, now)
}
