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

// Entry is what is known of one BackendPool. It has more than a dozen fields, for all that is
// remembered of a BackendPool beside its status goes when it goes.
type Entry struct {
	ref poolschedule.Ref

	// writing has room for one, who writes: so writes arrive in their order. He alone uses
	// version, the resource version that the last read or write showed, and own.
	writing chan struct{}
	version string
	own     own
	// guarded, which mu guards, is true if the status was read of an object with Weir's finalizer, or if this process
	// has set that: until then what is known may be older than what another process has recorded.
	guarded bool

	mu     sync.Mutex // guards all below; held for moments
	status v1alpha1.BackendPoolStatus
	// learnt is what another process has recorded and no attempt has seen; nil if nothing.
	learnt *v1alpha1.BackendPoolStatus
	// revision counts the changes of status, and saved is the one that the API holds.
	revision, saved int
	// patience is until when what is not saved may wait for the next write; zero if it may not.
	patience time.Time
	// gone refuses every further write: the finalizer is about to be removed.
	gone bool

	// set is what Desired computed last: what an attempt works with; nil once one has ended that
	// left the pool level, for it is as large as all else that is known of a pool.
	set *membership.Set
	// shownDown are the members of nodes that drain, as they were when the pool was last seen
	// level, by this process; nil until it was.
	shownDown map[netip.Addr]struct{}
	// unusable are the nodes of the set whose machine could not join, by the last attempt that left the pool
	// level. It is replaced, never changed.
	unusable []poolwrite.Unusable
	// spares is true while members stay up though their eviction is announced.
	spares bool

	// pool is where the BackendPool pointed last.
	pool lb.PoolID
	// acted is the situation that an operation was last queued for, or, once an attempt
	// has looked at the cluster, that of the attempt.
	acted situation
	// reportedAt is when the last attempt ended that was reported.
	reportedAt time.Time
	// missing is true from an attempt that found no pool to write until one that did.
	missing bool
	// unnamed is true after a first 404 that named nothing.
	unnamed bool
	// notBefore is a Retry-After that an earlier process was asked for.
	notBefore time.Time
	// recheckAt is when to queue one again though nothing changed; zero for never.
	recheckAt time.Time
	// released is true once none of our addresses is left in the pool.
	released bool
	// dropped is true once this process has deleted the BackendPool for its Service, which so has
	// not gone unseen.
	dropped bool
	// lastProblem is the problem that the last event on the BackendPool spoke of, and lastEvent
	// the reason of the last one on a pool of nodes about an attempt.
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

// holds reports whether an address of ours may be in the pool, or an interface Down by us.
func (e *Entry) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.status.WrittenAddresses)+len(e.status.Down) > 0
}

// Released reports whether none of our addresses is left in the pool.
func (e *Entry) Released() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.released
}

// Emptied notes that a pool is gone, and with it what Weir wrote there.
func (e *Entry) Emptied() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.released = true
}

// Drop notes that the BackendPool is deleted because its Service needs it no more.
func (e *Entry) Drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped = true
}

// unseen reports whether the Service of a BackendPool that is being deleted may have gone while
// nobody watched.
func unseen(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.released && !e.dropped
}

// reason returns the state that people read first.
func (e *Entry) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return syncedReason(e.status.Conditions)
}

// isPaused is what the status says of a pause.
func isPaused(e *Entry) metav1.ConditionStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pausing.Said(&e.status)
}

// remember keeps what an attempt works with, and for which situation that is: if the
// cluster is another one by the time it is looked at, an operation has to follow.
func (e *Entry) remember(set membership.Set, now situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set, e.acted = &set, now
}

// remembered is what the last attempt works with, or worked with; nil if that has left the pool level.
func (e *Entry) remembered() *membership.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}

// Unusable returns the nodes whose machine could not join when the pool was last seen level; none of nil.
func Unusable(e *Entry) []poolwrite.Unusable {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unusable
}

// beginsToSpare keeps whether members are spared, and reports whether that is news.
func (e *Entry) beginsToSpare(spares bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	begins := spares && !e.spares
	e.spares = spares
	return begins
}
