// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
)

// statusTimeout is the timeout of a status read or write, which holds a lock of the pool updater.
const statusTimeout = 10 * time.Second

var errTooManyConflicts = errors.New("others keep writing the object")

func isDeleted(err error) bool { return errors.Is(err, metadata.ErrDeleted) }

// updateStatus changes a status and writes it if it differs from the saved one. After an error the change remains
// in memory for the next write. It returns ErrDeleted if the object does not exist.
func (s *Statuses) updateStatus(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	e.writeSlot <- struct{}{}
	defer func() { <-e.writeSlot }()
	return s.updateStatusLocked(ctx, e, change)
}

// updateStatusLocked changes and writes a status. The caller holds e.writeSlot.
func (s *Statuses) updateStatusLocked(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	next, revision, err := e.prepareWrite(change)
	if next == nil {
		return err
	}
	e.written = e.written.withStatus(next)
	version, otherStatus, err := s.ApplyStatus(ctx, e.ref, e.version, next, e.written)
	e.version = version
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writeDeadline = time.Time{}
	if otherStatus != nil {
		e.mergeOtherRecord(otherStatus)
		revision = e.revision
		e.requestCheck(time.Now())
		e.written = e.written.withStatus(next)
	}
	if err == nil {
		e.savedRevision, e.written = revision, writtenStatuses{}.withStatus(next)
	}
	return err
}

// prepareWrite changes the status in memory, and returns a copy if it is not saved.
func (e *Entry) prepareWrite(change func(*v1alpha1.BackendPoolStatus)) (next *v1alpha1.BackendPoolStatus, revision int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isAbandoned {
		return nil, 0, metadata.ErrDeleted
	}
	e.changeStatus(change)
	if e.revision == e.savedRevision {
		return nil, 0, nil
	}
	return e.status.DeepCopy(), e.revision, nil
}

// maxStatusDelay is how long the write of a pending status may be delayed: usually a write by the attempt
// replaces it.
const maxStatusDelay = time.Second

// changeLater changes a status that is written with the next update, or after maxStatusDelay.
func changeLater(e *Entry, now time.Time, change func(*v1alpha1.BackendPoolStatus)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changeStatusLater(now, change)
}

// changeStatusLater changes a status that is written later, and reports whether it changed. The caller holds e.mu.
func (e *Entry) changeStatusLater(now time.Time, change func(*v1alpha1.BackendPoolStatus)) bool {
	before := e.revision
	e.changeStatus(change)
	if e.revision != before && e.writeDeadline.IsZero() {
		e.writeDeadline = now.Add(maxStatusDelay)
	}
	return e.revision != before
}

func isWriteDelayed(e *Entry, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.writeDeadline)
}

// flushStatus writes what an earlier update could not write, or what has waited long enough. It does not write an
// abandoned status: only the finalizer remains to be removed.
func (s *Statuses) flushStatus(ctx context.Context, e *Entry, now time.Time) error {
	if isAbandoned(e) || isWriteDelayed(e, now) {
		return nil
	}
	return s.updateStatus(ctx, e, func(*v1alpha1.BackendPoolStatus) {})
}

// ApplyStatus writes a status and returns the new resource version. It requires the known version, because the API
// server does not compare UIDs of status writes: a recreated BackendPool would get the status of the old one.
// After a conflict it reads the object again and retries if the UID is the same. If the stored status is not
// in written, another process wrote it: its record is merged, and its status returned.
func (s *Statuses) ApplyStatus(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus, written writtenStatuses) (newVersion string, otherStatus *v1alpha1.BackendPoolStatus, err error) {
	for range 5 {
		newVersion, err := s.applyOnce(ctx, ref, version, status)
		switch {
		case err == nil:
			return newVersion, otherStatus, nil
		case isDeleted(err):
			return version, otherStatus, metadata.ErrDeleted
		case !errors.Is(err, metadata.ErrConflict):
			return version, otherStatus, notWritten(ref, err)
		}
		p, err := s.readPool(ctx, ref)
		if err != nil {
			return version, otherStatus, err
		}
		version = p.ResourceVersion
		if !written.contains(&p.Status) {
			MergeRecord(status, &p.Status)
			otherStatus = p.Status.DeepCopy()
			written = written.withStatus(&p.Status).withStatus(status)
		}
	}
	return version, otherStatus, notWritten(ref, errTooManyConflicts)
}

func notWritten(ref schedule.Ref, err error) error {
	return fmt.Errorf("writing the status of BackendPool %s: %w", objectKey(ref.Namespace, ref.Name), err)
}

func (s *Statuses) applyOnce(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return s.api.Apply(ctx, ref, version, status)
}

// setFinalizer adds or removes Weir's finalizer. If the stored status is unknown to this process, the entry
// is dropped and loaded again.
func (s *Statuses) setFinalizer(ctx context.Context, e *Entry, p *v1alpha1.BackendPool, want bool) error {
	e.writeSlot <- struct{}{}
	defer func() { <-e.writeSlot }()
	if p.ResourceVersion != e.version { // the cached finalizers of other controllers may be outdated
		fresh, err := s.readPool(ctx, e.ref)
		if err != nil {
			return err
		}
		p = fresh
	}
	pool, err := s.api.SetFinalizer(ctx, p, want)
	if err != nil || !want {
		return err
	}
	if !e.written.contains(&pool.Status) {
		s.forgetEntry(e.ref)
		s.first.dropPool(e.ref)
		return nil
	}
	e.version = pool.ResourceVersion
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finalizerSeen = true
	return nil
}

func hasSeenFinalizer(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.finalizerSeen
}
