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

// situation is what an operation was queued for, or an attempt found. While it is the
// same, reconciling again queues nothing: our own status writes and timers cause no
// calls to Azure. The zero value is like no other.
type situation struct {
	state      State
	deleting   bool
	generation int64
	serviceUID types.UID
	// members tells the memberships of a pool of nodes apart. Those of a Service's
	// pool are the Service reconciler's.
	members uint64
	// retry is what a person has written who wants the pool tried again.
	retry string
}

// situationOf returns the situation of a BackendPool with these members.
func situationOf(p *v1alpha1.BackendPool, is Entitlement, set membership.Set) situation {
	now := situation{state: is.State, deleting: is.Deleting, generation: p.Generation, serviceUID: is.ServiceUID, retry: p.Annotations[v1alpha1.RetryNowAnnotation]}
	if p.Spec.Nodes != nil && !is.Removes() {
		now.members = set.Fingerprint()
	}
	return now
}

// due reports whether an operation has to be queued: the situation is a new one, or
// the time to look again has come.
func (e *Entry) due(s situation, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == e.acted && (e.recheckAt.IsZero() || now.Before(e.recheckAt)) {
		return false
	}
	e.acted, e.recheckAt = s, time.Time{}
	return true
}

// changed reports whether the situation is known to be another one than before. Of that in
// which an earlier process left a pool nothing is known.
func (e *Entry) changed(s situation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s != e.acted && (e.acted != situation{} || e.status.PoolID == "" && e.status.LastOutcome == nil)
}

// retried reports whether a person wants the pool tried again since it was acted upon. A process that starts
// tries everything.
func retried(e *Entry, s situation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acted != situation{} && s.retry != e.acted.retry && s.retry != ""
}

// idle notes a situation in which nothing is queued.
func (e *Entry) idle(s situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acted, e.recheckAt = s, time.Time{}
}

// again sets when to look again at the latest.
func (e *Entry) again(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recheckAt.IsZero() || at.Before(e.recheckAt) {
		e.recheckAt = at
	}
}

// wait returns how long until it is time to look again, or to say that the pool is not
// parked any more; 0 for never.
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

// schedule decides when to look again although nothing changes.
func (e *Entry) schedule(is Entitlement, r poolupdate.Report, c Config) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := r.Outcome == poolwrite.Stale || r.Outcome == poolwrite.Refused
	if e.reportedAt = r.At; r.Settled {
		e.set, e.unusable = nil, r.Unusable
	}
	e.missing = (missing || e.missing && !r.Settled) && !r.States
	if r.Outcome == poolwrite.Stale && r.Fault != nil && r.Fault.Code == fault.CodeNotFound && !e.unnamed {
		// A 404 that names nothing may be a proxy's: before our addresses are given up,
		// it has to come twice.
		e.unnamed, missing = true, missing && !is.Removes()
	} else {
		e.unnamed = false
	}
	switch {
	// A pool that is gone, or was made anew for network interfaces, holds none of ours. One
	// whose interfaces an attempt still had members for may have just got a state of ours.
	case is.Removes() && (missing && is.Deleting && (!r.States || r.Desired == 0) || r.Settled && len(r.Written) == 0):
		e.released, e.recheckAt = is.Deleting, time.Time{}
	case is.Removes() && !missing:
		e.recheckAt = r.At.Add(c.ReleaseAgainAfter)
	case e.missing: // also if Azure failed when it was asked again
		e.recheckAt = r.At.Add(c.RecheckAfter)
	default:
		e.recheckAt = time.Time{}
	}
}
