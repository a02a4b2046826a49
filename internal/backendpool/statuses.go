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
	"weir.dev/weir/internal/backendpool/making"
	"weir.dev/weir/internal/poolschedule"
)

// Statuses holds the status of each BackendPool. What is in memory is authoritative:
// it is read once, with a quorum read, and from then on only written. Its methods may
// be called from any goroutine.
type Statuses struct {
	api   API
	first firstRead
	mu    sync.Mutex                  // guards those below
	byRef map[poolschedule.Ref]*Entry // those that were loaded
	// named are the same by the name of their object, of which there may be several in turn.
	named  map[objectName][]*Entry
	making making.Names
}

type objectName struct{ namespace, name string }

func nameOf(ref poolschedule.Ref) objectName { return objectName{ref.Namespace, ref.Name} }

// NewStatuses returns one that knows none yet.
func NewStatuses(api API) *Statuses {
	return &Statuses{api: api, first: firstRead{slot: make(chan struct{}, 1)}, byRef: map[poolschedule.Ref]*Entry{}, named: map[objectName][]*Entry{}}
}

// Known returns the entry of a BackendPool that was loaded, or nil.
func (s *Statuses) Known(ref poolschedule.Ref) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRef[ref]
}

// Load returns the entry of a BackendPool, reading its status if this is the first
// that is heard of it. It returns ErrGone if there is no such object.
//
// One without Weir's finalizer has nothing on record, as far as is seen: its status is believed,
// and read anew if another process turns out to have set the finalizer.
func (s *Statuses) Load(ctx context.Context, p *v1alpha1.BackendPool, now time.Time) (*Entry, error) {
	ref, guarded := RefOf(p), hasFinalizer(p)
	if err := s.making.Wait(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}); err != nil {
		return nil, err
	}
	if e := s.Known(ref); e != nil && (!guarded || isGuarded(e)) {
		return e, nil
	}
	if guarded {
		s.forget(ref)
		var err error
		if p, err = s.first.of(ctx, s, ref, now); err != nil {
			return nil, err
		}
	}
	e := newEntry(ref, p)
	e.believe(p.Generation, now)
	return s.keep(e), nil
}

// Make has a BackendPool created, with Weir's finalizer, and believes the answer: nothing is on record of a new one.
func (s *Statuses) Make(p *v1alpha1.BackendPool, create func() error) error {
	defer s.making.Begin(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})()
	p.Finalizers = append(p.Finalizers, v1alpha1.Finalizer)
	err := create()
	if err == nil {
		s.Adopt(p)
	}
	return err
}

// forget drops what was known of a BackendPool.
func (s *Statuses) forget(ref poolschedule.Ref) {
	s.dropThose(nameOf(ref), func(e *Entry) bool { return e.ref == ref })
}

// Adopt returns the entry of a BackendPool, whose status is believed as it is.
func (s *Statuses) Adopt(p *v1alpha1.BackendPool) *Entry {
	if e := s.Known(RefOf(p)); e != nil {
		return e
	}
	return s.keep(newEntry(RefOf(p), p))
}

// keep returns the entry that is kept, which may have come first.
func (s *Statuses) keep(e *Entry) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byRef[e.ref]; other != nil {
		return other
	}
	s.byRef[e.ref] = e
	s.named[nameOf(e.ref)] = append(s.named[nameOf(e.ref)], e)
	return e
}

func (s *Statuses) read(ctx context.Context, ref poolschedule.Ref) (*v1alpha1.BackendPool, error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	p, err := s.api.Load(ctx, ref)
	switch {
	case isGone(err):
		return nil, ErrGone
	case err != nil:
		return nil, fmt.Errorf("reading BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
	}
	return p, nil
}

// drop forgets the entries of a name but for the one of this UID, and returns them.
func (s *Statuses) drop(namespace, name, exceptUID string) []*Entry {
	return s.dropThose(objectName{namespace, name}, func(e *Entry) bool { return e.ref.UID != exceptUID })
}

func (s *Statuses) dropThose(of objectName, are func(*Entry) bool) (dropped []*Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*Entry
	for _, e := range s.named[of] {
		if !are(e) {
			left = append(left, e)
			continue
		}
		delete(s.byRef, e.ref)
		dropped = append(dropped, e)
	}
	if s.named[of] = left; left == nil {
		delete(s.named, of)
	}
	return dropped
}

func (s *Statuses) entries() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]*Entry, 0, len(s.byRef)), maps.Values(s.byRef))
}

// Unsaved returns whose status is not what the API holds.
func (s *Statuses) Unsaved() []poolschedule.Ref {
	var refs []poolschedule.Ref
	for _, e := range s.entries() {
		if unsaved(e) {
			refs = append(refs, e.ref)
		}
	}
	return refs
}

// Synced calls yield with the Synced condition of each BackendPool that has one. Its cost grows with
// their number.
func (s *Statuses) Synced(yield func(of poolschedule.Ref, is metav1.Condition)) {
	for _, e := range s.entries() {
		e.mu.Lock()
		is := meta.FindStatusCondition(slices.Clone(e.status.Conditions), v1alpha1.ConditionSynced)
		e.mu.Unlock()
		if is != nil {
			yield(e.ref, *is)
		}
	}
}

// Contested counts those that somebody else keeps undoing. Its cost grows with their number.
func (s *Statuses) Contested() (n int) {
	for _, e := range s.entries() {
		if contested(e) {
			n++
		}
	}
	return n
}

// statusOf is what is known of the status of a BackendPool: the cluster's copy learns of our own
// writes late.
func (s *Statuses) statusOf(p *v1alpha1.BackendPool, read func(*v1alpha1.BackendPoolStatus)) {
	if e := s.Known(RefOf(p)); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		read(&e.status)
		return
	}
	read(&p.Status)
}

// Taken reports whether something of the pool of a BackendPool is ours.
func (s *Statuses) Taken(p *v1alpha1.BackendPool) (taken bool) {
	s.statusOf(p, func(is *v1alpha1.BackendPoolStatus) { taken = takes(is) })
	return taken
}

// MadeFor is for whom Weir made a BackendPool, as recorded; empty if it did not.
func (s *Statuses) MadeFor(p *v1alpha1.BackendPool) (owner string) {
	s.statusOf(p, func(is *v1alpha1.BackendPoolStatus) { owner = is.MadeFor })
	return owner
}

// IsLevel reports whether the status of a BackendPool says that its pool is level.
func (s *Statuses) IsLevel(p *v1alpha1.BackendPool) bool {
	e := s.Known(RefOf(p))
	return e != nil && e.reason() == v1alpha1.ReasonLevel
}

// NothingForeign reports whether an attempt has seen none but Weir's addresses in a pool.
func (s *Statuses) NothingForeign(p *v1alpha1.BackendPool) (none bool) {
	s.statusOf(p, func(is *v1alpha1.BackendPoolStatus) { none = is.Foreign != nil && *is.Foreign == 0 })
	return none
}

// takes reports whether a pool was ever taken, or is one of network interfaces with admin
// states of ours.
func takes(s *v1alpha1.BackendPoolStatus) bool { return s.PoolID != "" || len(s.Down) > 0 }
