// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/updater"
)

// operationInput is the input of an operation. While it is unchanged, reconciling queues nothing, so status writes
// and timers cause no Azure calls. The zero value equals no real situation.
type operationInput struct {
	state      State
	deleting   bool
	generation int64
	serviceUID types.UID
	// members is the fingerprint of a pool of nodes. The Service reconciler handles the others.
	members uint64
	// retry is the value of the retry annotation.
	retry string
}

func newOperationInput(p *v1alpha1.BackendPool, binding Binding, set membership.Set) operationInput {
	input := operationInput{state: binding.State, deleting: binding.Deleting, generation: p.Generation, serviceUID: binding.ServiceUID, retry: p.Annotations[v1alpha1.RetryNowAnnotation]}
	if p.Spec.Nodes != nil && !binding.RemovesMembers() {
		input.members = set.Fingerprint()
	}
	return input
}

// needsOperation reports whether to queue an operation: the situation changed, or nextCheckAt has passed.
func (e *Entry) needsOperation(s operationInput, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == e.lastInput && (e.nextCheckAt.IsZero() || now.Before(e.nextCheckAt)) {
		return false
	}
	e.setInput(s)
	return true
}

// hasChanged reports whether the situation is known to have changed; false if an earlier process handled the
// pool.
func (e *Entry) hasChanged(s operationInput) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s != e.lastInput && (e.lastInput != operationInput{} || e.status.PoolID == "" && e.status.LastOutcome == nil)
}

// isRetryRequested reports whether the user requested a retry since the last operation. After a start everything is
// tried anyway.
func isRetryRequested(e *Entry, s operationInput) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastInput != operationInput{} && s.retry != e.lastInput.retry && s.retry != ""
}

// setIdleInput records a situation that needs no operation.
func (e *Entry) setIdleInput(s operationInput) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setInput(s)
}

// setInput records a situation that is handled. The caller holds e.mu.
func (e *Entry) setInput(s operationInput) {
	e.lastInput, e.nextCheckAt, e.checkRequested = s, time.Time{}, false
}

// requestCheck requests an operation without a change. The end of a running attempt does not cancel it. The caller
// holds e.mu.
func (e *Entry) requestCheck(now time.Time) {
	e.nextCheckAt, e.checkRequested = now, true
}

func (e *Entry) scheduleCheck(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.nextCheckAt.IsZero() || at.Before(e.nextCheckAt) {
		e.nextCheckAt = at
	}
}

// timeToNextCheck returns the time until the next recheck, status write or end of a Retry-After; 0 for never.
func (e *Entry) timeToNextCheck(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := idleUntil(&e.status)
	if !e.nextCheckAt.IsZero() && (next.IsZero() || e.nextCheckAt.Before(next)) {
		next = e.nextCheckAt
	}
	if e.revision != e.savedRevision && !e.writeDeadline.IsZero() && (next.IsZero() || e.writeDeadline.Before(next)) {
		next = e.writeDeadline
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

// scheduleAfterAttempt sets when to recheck without a change.
func (e *Entry) scheduleAfterAttempt(binding Binding, r updater.Report, c Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := r.Outcome == diff.Stale || r.Outcome == diff.Rejected
	if e.reportedAt = r.At; r.InSync {
		e.set, e.unusableNodes = nil, r.Unusable
	}
	e.poolMissing = (missing || e.poolMissing && !r.InSync) && !r.StatesInSync
	if r.Outcome == diff.Stale && r.Fault != nil && r.Fault.Code == armerror.CodeNotFound && !e.hadUnnamedNotFound {
		// A proxy may have returned a 404 that names no resource: require a second one before giving up
		// Weir's addresses.
		e.hadUnnamedNotFound, missing = true, missing && !binding.RemovesMembers()
	} else {
		e.hadUnnamedNotFound = false
	}
	switch {
	// A pool that was deleted, or recreated for network interfaces, contains no address of Weir. If the
	// attempt still had members for its interfaces, it may have set an admin state.
	case binding.RemovesMembers() && (missing && binding.Deleting && (!r.StatesInSync || r.Desired == 0) || r.InSync && len(r.Written) == 0):
		e.isReleased, e.nextCheckAt = binding.Deleting, time.Time{}
	case binding.RemovesMembers() && !missing:
		e.nextCheckAt = r.At.Add(c.ReleaseRetryInterval)
	case len(r.Overlapping) > 0: // the other cluster may be about to remove them
		e.nextCheckAt = r.At.Add(c.ReleaseRetryInterval)
	case e.poolMissing: // also if Azure failed the second read
		e.nextCheckAt = r.At.Add(c.RecheckInterval)
	default:
		e.nextCheckAt = time.Time{}
	}
	if e.checkRequested && !e.isReleased {
		e.nextCheckAt = r.At
	}
}
