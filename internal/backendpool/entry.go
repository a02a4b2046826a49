// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/backendpool/pausing"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Entry is the in-memory state of one BackendPool. One struct holds all of it so that it is dropped with the
// BackendPool.
type Entry struct {
	ref poolschedule.Ref

	// writing is a one-slot semaphore that serializes writes. Its holder owns version, the resource version
	// of the last read or write, and own.
	writing chan struct{}
	version string
	own     own
	// guarded (guarded by mu) is true once the status was read from an object with Weir's finalizer, or this
	// process has set it. Before that, another process may have recorded more.
	guarded bool

	mu     sync.Mutex // guards the fields below; held briefly
	status v1alpha1.BackendPoolStatus
	// learnt is what another process recorded and no attempt has read yet; nil if nothing.
	learnt *v1alpha1.BackendPoolStatus
	// revision counts changes of status; saved is the revision that the API server has.
	revision, saved int
	// patience is the deadline for writing unsaved changes; zero means immediately.
	patience time.Time
	// gone rejects further writes: the finalizer is about to be removed.
	gone bool

	// set is the last result of Desired. It is nil after an attempt that brought the pool in sync, because it
	// is large.
	set *membership.Set
	// shownDown are the draining members when this process last saw the pool in sync; nil before that.
	shownDown map[netip.Addr]struct{}
	// unusable are the nodes that could not join, by the last attempt that brought the pool in sync.
	// Replaced, never modified.
	unusable []poolwrite.Unusable
	// spares is true while members are kept up although their eviction is announced.
	spares bool

	// pool is the last known target.
	pool lb.PoolID
	// acted is the situation of the last queued operation, or of the last attempt that read the cluster.
	acted situation
	// reportedAt is when the last reported attempt ended.
	reportedAt time.Time
	// missing is true from an attempt that found no pool to write until one that did.
	missing bool
	// unnamed is true after a first 404 without a resource name.
	unnamed bool
	// notBefore is a Retry-After received by an earlier process.
	notBefore time.Time
	// recheckAt is when to queue an operation without a change; zero for never.
	recheckAt time.Time
	// released is true once the pool contains none of Weir's addresses.
	released bool
	// dropped is true once this process deleted the BackendPool because its Service no longer needs it.
	dropped bool
	// lastProblem is the problem of the last event on the BackendPool. lastEvent is the reason of the last
	// attempt event, for pools of nodes only.
	lastProblem, lastEvent string
}

func newEntry(ref poolschedule.Ref, p *v1alpha1.BackendPool) *Entry {
	last := lastEvent(&p.Status)
	return &Entry{
		ref: ref, writing: make(chan struct{}, 1), version: p.ResourceVersion, own: own{}.with(&p.Status), guarded: hasFinalizer(p),
		status: p.Status, unusable: members.ParseUnusable(p.Status.Unusable), lastProblem: last.Problem, lastEvent: last.Word,
	}
}

// amend changes the status in memory. The caller holds e.mu.
func (e *Entry) amend(change func(*v1alpha1.BackendPoolStatus)) {
	next := e.status.DeepCopy()
	change(next)
	if e.learnt != nil {
		members.Unite(next, e.learnt)
	}
	if !equality.Semantic.DeepEqual(next, &e.status) {
		e.status = *next
		e.revision++
	}
}

func unsaved(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.revision != e.saved
}

// LacksPool reports whether the last attempt found no pool to write.
func (e *Entry) LacksPool() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missing
}

// holds reports whether the pool may contain addresses of Weir, or an interface that Weir set Down.
func (e *Entry) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.status.WrittenAddresses)+len(e.status.Down) > 0
}

// Released reports whether the pool contains none of Weir's addresses.
func (e *Entry) Released() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.released
}

// Emptied records that the pool was deleted in Azure.
func (e *Entry) Emptied() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.released = true
}

// Drop records that Weir deleted the BackendPool because its Service no longer needs it.
func (e *Entry) Drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped = true
}

// unseen reports whether the Service may have been deleted while no process was watching.
func unseen(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.released && !e.dropped
}

func (e *Entry) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return syncedReason(e.status.Conditions)
}

func isPaused(e *Entry) metav1.ConditionStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pausing.Said(&e.status)
}

// remember stores the members and the situation of an attempt. If the situation differs at the next
// reconciliation, an operation is queued.
func (e *Entry) remember(set membership.Set, now situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set, e.acted = &set, now
}

// remembered returns the members of the last attempt; nil if it brought the pool in sync.
func (e *Entry) remembered() *membership.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}

// Unusable returns the nodes that could not join when the pool was last in sync. e may be nil.
func Unusable(e *Entry) []poolwrite.Unusable {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unusable
}

// beginsToSpare sets spares and reports whether it became true.
func (e *Entry) beginsToSpare(spares bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	begins := spares && !e.spares
	e.spares = spares
	return begins
}
