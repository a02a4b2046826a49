// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
)

// Statuses holds the status of each BackendPool. The copy in memory is authoritative: it is loaded once with
// a quorum read and then only written. It is safe for concurrent use.
type Statuses struct {
	api   API
	first firstRead
	mu    sync.Mutex              // guards the fields below
	byRef map[schedule.Ref]*Entry // loaded entries
	// named are the same entries by object name; a recreated object has several.
	named    map[objectName][]*Entry
	creating pendingCreates
}

type objectName struct{ namespace, name string }

func nameOf(ref schedule.Ref) objectName { return objectName{ref.Namespace, ref.Name} }

// NewStatuses returns empty Statuses.
func NewStatuses(api API) *Statuses {
	return &Statuses{api: api, first: firstRead{slot: make(chan struct{}, 1)}, byRef: map[schedule.Ref]*Entry{}, named: map[objectName][]*Entry{}}
}

// GetEntry returns the entry of a loaded BackendPool, or nil.
func (s *Statuses) GetEntry(ref schedule.Ref) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRef[ref]
}

// LoadEntry returns the entry of a BackendPool, reading its status on first use. It returns ErrDeleted if the object
// does not exist.
//
// Without Weir's finalizer the cached status is used as is, and read again if another process has set the
// finalizer.
func (s *Statuses) LoadEntry(ctx context.Context, p *v1alpha1.BackendPool, now time.Time) (*Entry, error) {
	ref, guarded := RefOf(p), hasFinalizer(p)
	if err := s.creating.waitCreated(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
		return nil, err
	}
	if e := s.GetEntry(ref); e != nil && (!guarded || hasSeenFinalizer(e)) {
		return e, nil
	}
	if guarded {
		s.forgetEntry(ref)
		var err error
		if p, err = s.first.getPool(ctx, s, ref, now); err != nil {
			return nil, err
		}
	}
	e := newEntry(ref, p)
	e.adoptPersistedRetryAfter(p.Generation, now)
	return s.storeEntry(e), nil
}

// CreatePool creates a BackendPool with Weir's finalizer and adopts the response, which has no record yet.
func (s *Statuses) CreatePool(p *v1alpha1.BackendPool, create func() error) error {
	defer s.creating.beginCreate(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})()
	p.Finalizers = append(p.Finalizers, v1alpha1.Finalizer)
	err := create()
	if err == nil {
		s.AdoptPool(p)
	}
	return err
}

// forgetEntry drops the state of a BackendPool.
func (s *Statuses) forgetEntry(ref schedule.Ref) {
	s.dropMatching(nameOf(ref), func(e *Entry) bool { return e.ref == ref })
}

// AdoptPool returns the entry of a BackendPool and uses its status as is.
func (s *Statuses) AdoptPool(p *v1alpha1.BackendPool) *Entry {
	if e := s.GetEntry(RefOf(p)); e != nil {
		return e
	}
	return s.storeEntry(newEntry(RefOf(p), p))
}

// storeEntry stores the entry unless another one exists, and returns the stored one.
func (s *Statuses) storeEntry(e *Entry) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byRef[e.ref]; other != nil {
		return other
	}
	s.byRef[e.ref] = e
	s.named[nameOf(e.ref)] = append(s.named[nameOf(e.ref)], e)
	return e
}

func (s *Statuses) readPool(ctx context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	p, err := s.api.Load(ctx, ref)
	switch {
	case isDeleted(err):
		return nil, metadata.ErrDeleted
	case err != nil:
		return nil, fmt.Errorf("reading BackendPool %s: %w", objectKey(ref.Namespace, ref.Name), err)
	}
	return p, nil
}

// dropOthers removes and returns the entries of a name except the one with this UID.
func (s *Statuses) dropOthers(namespace, name, exceptUID string) []*Entry {
	return s.dropMatching(objectName{namespace, name}, func(e *Entry) bool { return e.ref.UID != exceptUID })
}

func (s *Statuses) dropMatching(name objectName, matches func(*Entry) bool) (dropped []*Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var remaining []*Entry
	for _, e := range s.named[name] {
		if !matches(e) {
			remaining = append(remaining, e)
			continue
		}
		delete(s.byRef, e.ref)
		dropped = append(dropped, e)
	}
	if s.named[name] = remaining; remaining == nil {
		delete(s.named, name)
	}
	return dropped
}

func (s *Statuses) listEntries() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]*Entry, 0, len(s.byRef)), maps.Values(s.byRef))
}

// ListUnsaved returns the BackendPools with an unsaved status.
func (s *Statuses) ListUnsaved() []schedule.Ref {
	var refs []schedule.Ref
	for _, e := range s.listEntries() {
		if hasUnsavedStatus(e) {
			refs = append(refs, e.ref)
		}
	}
	return refs
}

// Synced calls yield with the Synced condition of each BackendPool that has one, in O(n).
func (s *Statuses) Synced(yield func(of schedule.Ref, cond metav1.Condition)) {
	for _, e := range s.listEntries() {
		e.mu.Lock()
		cond := meta.FindStatusCondition(slices.Clone(e.status.Conditions), v1alpha1.ConditionSynced)
		e.mu.Unlock()
		if cond != nil {
			yield(e.ref, *cond)
		}
	}
}

// CountConflicting returns the number of contested BackendPools, in O(n).
func (s *Statuses) CountConflicting() (n int) {
	for _, e := range s.listEntries() {
		if hasConflict(e) {
			n++
		}
	}
	return n
}

// readStatus reads the latest status: the cache lags behind Weir's own writes.
func (s *Statuses) readStatus(p *v1alpha1.BackendPool, read func(*v1alpha1.BackendPoolStatus)) {
	if e := s.GetEntry(RefOf(p)); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		read(&e.status)
		return
	}
	read(&p.Status)
}

// HasRecord reports whether Weir has recorded anything in the pool.
func (s *Statuses) HasRecord(p *v1alpha1.BackendPool) (taken bool) {
	s.readStatus(p, func(status *v1alpha1.BackendPoolStatus) { taken = hasTakenPool(status) })
	return taken
}

// ManagedFor returns the recorded owner of a BackendPool that Weir created; else "".
func (s *Statuses) ManagedFor(p *v1alpha1.BackendPool) (owner string) {
	s.readStatus(p, func(status *v1alpha1.BackendPoolStatus) { owner = status.MadeFor })
	return owner
}

// IsInSync reports whether the status of a BackendPool is in sync.
func (s *Statuses) IsInSync(p *v1alpha1.BackendPool) bool {
	e := s.GetEntry(RefOf(p))
	return e != nil && e.currentReason() == v1alpha1.ReasonInSync
}

// HasNoForeign reports whether an attempt found no foreign addresses in the pool.
func (s *Statuses) HasNoForeign(p *v1alpha1.BackendPool) (none bool) {
	s.readStatus(p, func(status *v1alpha1.BackendPoolStatus) { none = status.Foreign != nil && *status.Foreign == 0 })
	return none
}

// LacksMembers reports whether the pool had no member at its last attempt although nodes qualify, even if none of their
// machines can join.
func (s *Statuses) LacksMembers(p *v1alpha1.BackendPool) (lacks bool) {
	s.readStatus(p, func(status *v1alpha1.BackendPoolStatus) {
		lacks = status.Desired != nil && status.Observed != nil && *status.Observed == 0 && int(*status.Desired)+len(status.Unusable) > 0
	})
	return lacks
}

// hasTakenPool reports whether the pool was taken, or has interfaces that Weir set Down.
func hasTakenPool(s *v1alpha1.BackendPoolStatus) bool { return s.PoolID != "" || len(s.Down) > 0 }
