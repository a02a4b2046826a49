// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// fieldOwner is Weir's name in managedFields.
const fieldOwner = "weir"

// statusDeadline bounds one read or write of a status: it happens under a lane's lock.
const statusDeadline = 10 * time.Second

// errGone says that a BackendPool is not there any more, or is another of its name.
var errGone = errors.New("the BackendPool is gone")

// statuses holds the status of each BackendPool. What is in memory is authoritative:
// it is read once, with a quorum read, and from then on only written. Its methods may
// be called from any goroutine.
type statuses struct {
	reader client.Reader             // the API server, never the cache
	writer client.SubResourceWriter  // of the status
	mu     sync.Mutex                // guards byRef
	byRef  map[poolupdate.Ref]*entry // those that were loaded
}

// entry is what is known of one BackendPool.
type entry struct {
	ref poolupdate.Ref

	// writing is held across a write, so that writes arrive in their order. It guards
	// version, the resource version that the last read or write showed, and own.
	writing sync.Mutex
	version string
	own     own

	mu     sync.Mutex // guards all below; held for moments
	status v1alpha1.BackendPoolStatus
	// learnt is what another process has recorded and no attempt has seen; nil if nothing.
	learnt *v1alpha1.BackendPoolStatus
	// revision counts the changes of status, and saved is the one that the API holds.
	revision, saved int
	// gone refuses every further write: the finalizer is about to be removed.
	gone bool

	// set and setErr are what Desired computed last: what an attempt works with.
	set membership.Set

	// shownDown are the members of nodes that drain, as they were when the pool was last seen
	// level, by this process; nil until it was.
	shownDown map[netip.Addr]struct{}
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
	// told is the problem that the last event on the BackendPool spoke of.
	told string
	// word is the reason of the last event on a pool of nodes about an attempt.
	word string
}

// known returns the entry of a BackendPool that was loaded, or nil.
func (s *statuses) known(ref poolupdate.Ref) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRef[ref]
}

// load returns the entry of a BackendPool, reading its status if this is the first
// that is heard of it. It returns errGone if there is no such object.
func (s *statuses) load(ctx context.Context, ref poolupdate.Ref) (*entry, error) {
	if e := s.known(ref); e != nil {
		return e, nil
	}
	p, err := s.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	told := toldIn(&p.Status)
	e := &entry{ref: ref, version: p.ResourceVersion, own: own{}.with(&p.Status), status: p.Status, told: told.Problem, word: told.Word}
	e.believe(p.Generation, time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byRef[ref]; other != nil {
		return other, nil
	}
	s.byRef[ref] = e
	return e, nil
}

func (s *statuses) read(ctx context.Context, ref poolupdate.Ref) (*v1alpha1.BackendPool, error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	p := &v1alpha1.BackendPool{}
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, p)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(p.UID) != ref.UID:
		return nil, errGone
	case err != nil:
		return nil, fmt.Errorf("reading BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
	}
	return p, nil
}

// States counts the BackendPools by the reason of their Synced condition, as kubectl
// shows it. Its cost grows with their number.
func (c *Cluster) States() map[string]int {
	c.statuses.mu.Lock()
	entries := slices.Collect(maps.Values(c.statuses.byRef))
	c.statuses.mu.Unlock()
	count := map[string]int{}
	for _, reason := range v1alpha1.SyncedReasons {
		count[reason] = 0
	}
	for _, e := range entries {
		if reason := e.reason(); reason != "" {
			count[reason]++
		}
	}
	return count
}

// drop forgets the entries of a name but for the one of this UID, and returns them.
func (s *statuses) drop(namespace, name, exceptUID string) []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var dropped []*entry
	for ref, e := range s.byRef {
		if ref.Namespace == namespace && ref.Name == name && ref.UID != exceptUID {
			delete(s.byRef, ref)
			dropped = append(dropped, e)
		}
	}
	return dropped
}

// update changes a status and writes it, if that changed anything or an earlier write
// did not succeed. After an error the change stands in memory and the next update
// writes it, or flush does. It returns errGone if the object is not there any more.
func (s *statuses) update(ctx context.Context, e *entry, change func(*v1alpha1.BackendPoolStatus)) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return s.updateLocked(ctx, e, change)
}

// updateLocked is update for who holds e.writing.
func (s *statuses) updateLocked(ctx context.Context, e *entry, change func(*v1alpha1.BackendPoolStatus)) error {
	e.mu.Lock()
	if e.gone {
		e.mu.Unlock()
		return errGone
	}
	e.amend(change)
	if e.revision == e.saved {
		e.mu.Unlock()
		return nil
	}
	next, revision := e.status.DeepCopy(), e.revision
	e.mu.Unlock()

	e.own = e.own.with(next)
	version, anothers, err := s.apply(ctx, e.ref, e.version, next, e.own)
	e.version = version
	e.mu.Lock()
	defer e.mu.Unlock()
	if anothers != nil {
		e.learn(anothers)
		revision, e.recheckAt = e.revision, time.Now()
		e.own = e.own.with(next)
	}
	if err == nil {
		e.saved, e.own = revision, own{}.with(next)
	}
	return err
}

// amend changes the status in memory. The caller holds e.mu.
func (e *entry) amend(change func(*v1alpha1.BackendPoolStatus)) {
	next := e.status.DeepCopy()
	change(next)
	if e.learnt != nil {
		unite(next, e.learnt)
	}
	if !equality.Semantic.DeepEqual(next, &e.status) {
		e.status = *next
		e.revision++
	}
}

// flush writes what an earlier update could not.
func (s *statuses) flush(ctx context.Context, e *entry) error {
	return s.update(ctx, e, func(*v1alpha1.BackendPoolStatus) {})
}

// kept returns whose status is not what the API holds.
func (s *statuses) kept() []poolupdate.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refs []poolupdate.Ref
	for ref, e := range s.byRef {
		e.mu.Lock()
		if e.revision != e.saved {
			refs = append(refs, ref)
		}
		e.mu.Unlock()
	}
	return refs
}

// apply writes a whole status by server-side apply, and returns the object's new
// resource version. It names the version that it knows, because the API server does
// not compare UIDs when a status is written: without, a BackendPool that was made anew
// under the name would get the status of the old one. Where the object has moved on,
// it is read again, and written if it is still the same. Where the status that stands is
// not of our own, another process has written it: what that one has recorded is kept, and
// its status returned.
func (s *statuses) apply(ctx context.Context, ref poolupdate.Ref, version string, status *v1alpha1.BackendPoolStatus, ours own) (is string, anothers *v1alpha1.BackendPoolStatus, err error) {
	for range 5 {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			return version, anothers, fmt.Errorf("status of BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "BackendPool",
			"metadata": map[string]any{"namespace": ref.Namespace, "name": ref.Name, "uid": ref.UID, "resourceVersion": version},
			"status":   fields,
		}}
		switch err = s.applyOnce(ctx, u); {
		case err == nil:
			return u.GetResourceVersion(), anothers, nil
		case apierrors.IsNotFound(err):
			return version, anothers, errGone
		case !apierrors.IsConflict(err):
			return version, anothers, notWritten(ref, err)
		}
		p, err := s.read(ctx, ref)
		if err != nil {
			return version, anothers, err
		}
		version = p.ResourceVersion
		if !ours.has(&p.Status) {
			unite(status, &p.Status)
			anothers = p.Status.DeepCopy()
			ours = ours.with(&p.Status).with(status)
		}
	}
	return version, anothers, notWritten(ref, errMovesOn)
}

// errMovesOn says that an object changes faster than it can be read.
var errMovesOn = errors.New("others keep writing the object")

func notWritten(ref poolupdate.Ref, err error) error {
	return fmt.Errorf("writing the status of BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
}

func (s *statuses) applyOnce(ctx context.Context, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	return s.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldOwner), client.ForceOwnership)
}

// taken reports whether something of the pool is ours.
func (e *entry) taken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return takes(&e.status)
}

// takes reports whether a pool was ever taken, or is one of network interfaces with admin
// states of ours.
func takes(s *v1alpha1.BackendPoolStatus) bool { return s.PoolID != "" || len(s.Down) > 0 }

// lacksPool reports whether the last attempt found no pool to write.
func (e *entry) lacksPool() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.missing
}

// holds reports whether an address of ours may be in the pool, or an interface Down by us.
func (e *entry) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.status.WrittenAddresses)+len(e.status.Down) > 0
}

// reason returns the state that people read first.
func (e *entry) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return syncedReason(e.status.Conditions)
}

// remember keeps what an attempt works with, and for which situation that is: if the
// cluster is another one by the time it is looked at, an operation has to follow.
func (e *entry) remember(set membership.Set, now situation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set, e.acted = set, now
}

// remembered is what the last attempt works with, or worked with.
func (e *entry) remembered() membership.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}
