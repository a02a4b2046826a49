// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// situation is the input of an operation. While it is unchanged, reconciling queues nothing, so status writes
// and timers cause no Azure calls. The zero value equals no real situation.
type situation struct {
	state      State
	deleting   bool
	generation int64
	serviceUID types.UID
	// members is the fingerprint of a pool of nodes. The Service reconciler handles the others.
	members uint64
	// retry is the value of the retry annotation.
	retry string
}

func situationOf(p *v1alpha1.BackendPool, is Entitlement, set membership.Set) situation {
	now := situation{state: is.State, deleting: is.Deleting, generation: p.Generation, serviceUID: is.ServiceUID, retry: p.Annotations[v1alpha1.RetryNowAnnotation]}
	if p.Spec.Nodes != nil && !is.Removes() {
		now.members = set.Fingerprint()
	}
	return now
}

// due reports whether to queue an operation: the situation changed, or recheckAt has passed.
func (e *Entry) due(s situation, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == e.acted && (e.recheckAt.IsZero() || now.Before(e.recheckAt)) {
		return false
	}
	e.acted, e.recheckAt = s, time.Time{}
	return true
}

// changed reports whether the situation is known to have changed; false if an earlier process handled the
// pool.
func (e *Entry) changed(s situation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s != e.acted && (e.acted != situation{} || e.status.PoolID == "" && e.status.LastOutcome == nil)
}

// retried reports whether the user requested a retry since the last operation. After a start everything is
// tried anyway.
func retried(e *Entry, s situation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acted != situation{} && s.retry != e.acted.retry && s.retry != ""
}

// idle records a situation that needs no operation.
func (e *Entry) idle(s situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acted, e.recheckAt = s, time.Time{}
}

func (e *Entry) again(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recheckAt.IsZero() || at.Before(e.recheckAt) {
		e.recheckAt = at
	}
}

// wait returns the time until the next recheck, status write or end of a Retry-After; 0 for never.
func (e *Entry) wait(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := restsUntil(&e.status)
	if !e.recheckAt.IsZero() && (next.IsZero() || e.recheckAt.Before(next)) {
		next = e.recheckAt
	}
	if e.revision != e.saved && !e.patience.IsZero() && (next.IsZero() || e.patience.Before(next)) {
		next = e.patience
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), time.Millisecond)
}

// schedule sets when to recheck without a change.
func (e *Entry) schedule(is Entitlement, r poolupdate.Report, c Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := r.Outcome == poolwrite.Stale || r.Outcome == poolwrite.Refused
	if e.reportedAt = r.At; r.Settled {
		e.set, e.unusable = nil, r.Unusable
	}
	e.missing = (missing || e.missing && !r.Settled) && !r.States
	if r.Outcome == poolwrite.Stale && r.Fault != nil && r.Fault.Code == fault.CodeNotFound && !e.unnamed {
		// A proxy may have returned a 404 that names no resource: require a second one before giving up
		// Weir's addresses.
		e.unnamed, missing = true, missing && !is.Removes()
	} else {
		e.unnamed = false
	}
	switch {
	// A pool that was deleted, or recreated for network interfaces, contains no address of Weir. If the
	// attempt still had members for its interfaces, it may have set an admin state.
	case is.Removes() && (missing && is.Deleting && (!r.States || r.Desired == 0) || r.Settled && len(r.Written) == 0):
		e.released, e.recheckAt = is.Deleting, time.Time{}
	case is.Removes() && !missing:
		e.recheckAt = r.At.Add(c.ReleaseAgainAfter)
	case e.missing: // also if Azure failed the second read
		e.recheckAt = r.At.Add(c.RecheckAfter)
	default:
		e.recheckAt = time.Time{}
	}
}
