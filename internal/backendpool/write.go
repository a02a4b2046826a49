// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/poolschedule"
)

// statusDeadline is the timeout of a status read or write, which holds a lock of the pool updater.
const statusDeadline = 10 * time.Second

var errMovesOn = errors.New("others keep writing the object")

func isGone(err error) bool { return errors.Is(err, ErrGone) }

// update changes a status and writes it if it differs from the saved one. After an error the change remains
// in memory for the next write. It returns ErrGone if the object does not exist.
func (s *Statuses) update(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	return s.updateInTurn(ctx, e, change)
}

// updateInTurn changes and writes a status. The caller holds e.writing.
func (s *Statuses) updateInTurn(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	next, revision, err := e.toWrite(change)
	if next == nil {
		return err
	}
	e.own = e.own.with(next)
	version, otherStatus, err := s.Apply(ctx, e.ref, e.version, next, e.own)
	e.version = version
	e.mu.Lock()
	defer e.mu.Unlock()
	e.patience = time.Time{}
	if otherStatus != nil {
		e.learn(otherStatus)
		revision, e.recheckAt = e.revision, time.Now()
		e.own = e.own.with(next)
	}
	if err == nil {
		e.saved, e.own = revision, own{}.with(next)
	}
	return err
}

// toWrite changes the status in memory, and returns a copy if it is not saved.
func (e *Entry) toWrite(change func(*v1alpha1.BackendPoolStatus)) (next *v1alpha1.BackendPoolStatus, revision int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return nil, 0, ErrGone
	}
	e.amend(change)
	if e.revision == e.saved {
		return nil, 0, nil
	}
	return e.status.DeepCopy(), e.revision, nil
}

// statusPatience is how long the write of a pending status may be delayed: usually a write by the attempt
// replaces it.
const statusPatience = time.Second

// soon changes a status that is written with the next update, or after statusPatience.
func soon(e *Entry, now time.Time, change func(*v1alpha1.BackendPoolStatus)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.amendSoon(now, change)
}

// amendSoon changes a status that is written later, and reports whether it changed. The caller holds e.mu.
func (e *Entry) amendSoon(now time.Time, change func(*v1alpha1.BackendPoolStatus)) bool {
	before := e.revision
	e.amend(change)
	if e.revision != before && e.patience.IsZero() {
		e.patience = now.Add(statusPatience)
	}
	return e.revision != before
}

func isPatient(e *Entry, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.patience)
}

// flush writes what an earlier update could not write, or what has waited long enough. It does not write an
// abandoned status: only the finalizer remains to be removed.
func (s *Statuses) flush(ctx context.Context, e *Entry, now time.Time) error {
	if abandoned(e) || isPatient(e, now) {
		return nil
	}
	return s.update(ctx, e, func(*v1alpha1.BackendPoolStatus) {})
}

// Apply writes a status and returns the new resource version. It requires the known version, because the API
// server does not compare UIDs of status writes: a recreated BackendPool would get the status of the old one.
// After a conflict it reads the object again and retries if the UID is the same. If the stored status is not
// in written, another process wrote it: its record is merged, and its status returned.
func (s *Statuses) Apply(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus, written own) (is string, otherStatus *v1alpha1.BackendPoolStatus, err error) {
	for range 5 {
		now, err := s.applyOnce(ctx, ref, version, status)
		switch {
		case err == nil:
			return now, otherStatus, nil
		case isGone(err):
			return version, otherStatus, ErrGone
		case !errors.Is(err, ErrConflict):
			return version, otherStatus, notWritten(ref, err)
		}
		p, err := s.read(ctx, ref)
		if err != nil {
			return version, otherStatus, err
		}
		version = p.ResourceVersion
		if !written.has(&p.Status) {
			members.Unite(status, &p.Status)
			otherStatus = p.Status.DeepCopy()
			written = written.with(&p.Status).with(status)
		}
	}
	return version, otherStatus, notWritten(ref, errMovesOn)
}

func notWritten(ref poolschedule.Ref, err error) error {
	return fmt.Errorf("writing the status of BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
}

func (s *Statuses) applyOnce(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	return s.api.Apply(ctx, ref, version, status)
}

// setFinalizer adds or removes Weir's finalizer. If the stored status is unknown to this process, the entry
// is dropped and loaded again.
func (s *Statuses) setFinalizer(ctx context.Context, e *Entry, p *v1alpha1.BackendPool, want bool) error {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	if p.ResourceVersion != e.version { // the cached finalizers of other controllers may be outdated
		fresh, err := s.read(ctx, e.ref)
		if err != nil {
			return err
		}
		p = fresh
	}
	is, err := s.api.SetFinalizer(ctx, p, want)
	if err != nil || !want {
		return err
	}
	if !e.own.has(&is.Status) {
		s.forget(e.ref)
		s.first.drop(e.ref)
		return nil
	}
	e.version = is.ResourceVersion
	e.mu.Lock()
	defer e.mu.Unlock()
	e.guarded = true
	return nil
}

func isGuarded(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.guarded
}
