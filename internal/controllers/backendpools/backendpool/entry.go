// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// Entry is the in-memory state of one BackendPool. One struct holds all of it so that it is dropped with the
// BackendPool.
type Entry struct {
	ref schedule.Ref

	// writeSlot is a one-slot semaphore that serializes writes. Its holder owns version, the resource version
	// of the last read or write, and written.
	writeSlot chan struct{}
	version   string
	written   writtenStatuses

	mu sync.Mutex // guards the fields below; held briefly
	unsavedStatus
	operationSchedule
	observedPool
	// deletedByController is true once this process deleted the BackendPool because its Service no longer needs it.
	deletedByController bool
}

// unsavedStatus is the status of a BackendPool, which the API server may not have yet.
type unsavedStatus struct {
	status v1alpha1.BackendPoolStatus
	// finalizerSeen is true once the status was read from an object with Weir's finalizer, or this process has set it.
	// Before that, another process may have recorded more.
	finalizerSeen bool
	// otherRecord is what another process recorded and no attempt has read yet; nil if nothing.
	otherRecord *v1alpha1.BackendPoolStatus
	// revision counts changes of status; savedRevision is the revision that the API server has.
	revision, savedRevision int
	// writeDeadline is the deadline for writing unsaved changes; zero means immediately.
	writeDeadline time.Time
	// isAbandoned rejects further writes: the finalizer is about to be removed.
	isAbandoned bool
}

// operationSchedule decides when the next operation is queued.
type operationSchedule struct {
	// lastInput is the input of the last queued operation, or of the last attempt that read the cluster.
	lastInput operationInput
	// notBefore is a Retry-After received by an earlier process.
	notBefore time.Time
	// nextCheckAt is when to queue an operation without a change; zero for never.
	nextCheckAt time.Time
	// checkRequested is true from requestCheck until the next reconciliation has handled it. While it is true, the end of an
	// attempt does not cancel the check: the attempt may have read the cluster before, and a member would stay.
	checkRequested bool
}

// observedPool is what attempts have read of the pool in Azure.
type observedPool struct {
	// pool is the last known target.
	pool lb.PoolID
	// reportedAt is when the last reported attempt ended.
	reportedAt time.Time
	// poolMissing is true from an attempt that found no pool to write until one that did.
	poolMissing bool
	// hadUnnamedNotFound is true after a first 404 without a resource name.
	hadUnnamedNotFound bool
	// isReleased is true once the pool contains none of Weir's addresses.
	isReleased bool
	// set is the last result of Desired. It is nil after an attempt that brought the pool in sync, because it
	// is large.
	set *membership.Set
	// observedDown are the draining members when this process last saw the pool in sync; nil before that.
	observedDown map[netip.Addr]struct{}
	// shown are the members that the last read showed up, sorted, without those that a write since then may have changed.
	// Only with Config.MembersShown.
	shown []netip.Addr
	// unusableNodes are the nodes that could not join, by the last attempt that brought the pool in sync.
	// Replaced, never modified.
	unusableNodes []diff.Unusable
	// retainsEvicted is true while members are kept up although their eviction is announced.
	retainsEvicted bool
}

func newEntry(ref schedule.Ref, p *v1alpha1.BackendPool) *Entry {
	return &Entry{
		ref: ref, writeSlot: make(chan struct{}, 1), version: p.ResourceVersion, written: writtenStatuses{}.withStatus(&p.Status),
		unsavedStatus: unsavedStatus{status: p.Status, finalizerSeen: hasFinalizer(p)}, observedPool: observedPool{unusableNodes: ParseUnusable(p.Status.Unusable)},
	}
}

// changeStatus changes the status in memory. The caller holds e.mu.
func (e *Entry) changeStatus(change func(*v1alpha1.BackendPoolStatus)) {
	next := e.status.DeepCopy()
	change(next)
	if e.otherRecord != nil {
		MergeRecord(next, e.otherRecord)
	}
	if !equality.Semantic.DeepEqual(next, &e.status) {
		e.status = *next
		e.revision++
	}
}

func hasUnsavedStatus(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revision != e.savedRevision
}

// IsPoolMissing reports whether the last attempt found no pool to write.
func (e *Entry) IsPoolMissing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.poolMissing
}

// IsPoolEmpty reports whether the pool should have members and had none at the last read; known is false before any.
func IsPoolEmpty(e *Entry) (empty, known bool) {
	if e == nil {
		return false, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	desired, observed := e.status.Desired, e.status.Observed
	if desired == nil || observed == nil {
		return false, false
	}
	return *desired > 0 && *observed == 0, true
}

// hasMembers reports whether the pool may contain addresses of Weir, or an interface that Weir set Down.
func (e *Entry) hasMembers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.status.WrittenAddresses)+len(e.status.Down) > 0
}

// IsReleased reports whether the pool contains none of Weir's addresses.
func (e *Entry) IsReleased() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isReleased
}

// MarkPoolDeleted records that the pool was deleted in Azure.
func (e *Entry) MarkPoolDeleted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isReleased = true
}

// MarkDeletedByController records that Weir deleted the BackendPool because its Service no longer needs it.
func (e *Entry) MarkDeletedByController() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deletedByController = true
}

// needsServiceCheck reports whether the Service may have been deleted while no process was watching.
func needsServiceCheck(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.isReleased && !e.deletedByController
}

func (e *Entry) currentReason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return syncedReason(e.status.Conditions)
}

func isPaused(e *Entry) metav1.ConditionStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	return PausedStatus(&e.status)
}

// recordInput stores the members and the situation of an attempt. If the situation differs at the next
// reconciliation, an operation is queued.
func (e *Entry) recordInput(set membership.Set, input operationInput) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set, e.lastInput = &set, input
}

// attemptMembers returns the members of the last attempt; nil if it brought the pool in sync.
func (e *Entry) attemptMembers() *membership.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}

// UnusableNodes returns the nodes that could not join when the pool was last in sync. e may be nil.
func UnusableNodes(e *Entry) []diff.Unusable {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unusableNodes
}

// setRetainsEvicted sets whether evicted members are retained, and reports whether that is new.
func (e *Entry) setRetainsEvicted(retains bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	isNew := retains && !e.retainsEvicted
	e.retainsEvicted = retains
	return isNew
}
