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

// statusDeadline bounds one read or write of a status: it happens under a lane's lock.
const statusDeadline = 10 * time.Second

// errMovesOn says that an object changes faster than it can be read.
var errMovesOn = errors.New("others keep writing the object")

func isGone(err error) bool { return errors.Is(err, ErrGone) }

// update changes a status and writes it, if that changed anything or an earlier write
// did not succeed. After an error the change stands in memory and the next update
// writes it, or flush does. It returns ErrGone if the object is not there any more.
func (s *Statuses) update(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	return s.updateInTurn(ctx, e, change)
}

// updateInTurn is update for who has taken e.writing.
func (s *Statuses) updateInTurn(ctx context.Context, e *Entry, change func(*v1alpha1.BackendPoolStatus)) error {
	next, revision, err := e.toWrite(change)
	if next == nil {
		return err
	}
	e.own = e.own.with(next)
	version, anothers, err := s.Apply(ctx, e.ref, e.version, next, e.own)
	e.version = version
	e.mu.Lock()
	defer e.mu.Unlock()
	e.patience = time.Time{}
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

// toWrite changes the status in memory, and returns it if the API does not hold it.
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

// statusPatience is how long a status may wait to be written that says no more than that an attempt
// is about to be made: the record of that attempt, or its end, is written in its place.
const statusPatience = time.Second

// soon changes a status that is written with what comes next, or when its patience is over.
func soon(e *Entry, now time.Time, change func(*v1alpha1.BackendPoolStatus)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.amendSoon(now, change)
}

// amendSoon is soon for who holds e.mu. It reports whether the status is another one.
func (e *Entry) amendSoon(now time.Time, change func(*v1alpha1.BackendPoolStatus)) bool {
	before := e.revision
	e.amend(change)
	if e.revision != before && e.patience.IsZero() {
		e.patience = now.Add(statusPatience)
	}
	return e.revision != before
}

// isPatient reports whether what is not saved may wait.
func isPatient(e *Entry, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.patience)
}

// flush writes what an earlier update could not, or what has waited long enough. Of one that was
// abandoned nothing is written, and its finalizer has still to go.
func (s *Statuses) flush(ctx context.Context, e *Entry, now time.Time) error {
	if abandoned(e) || isPatient(e, now) {
		return nil
	}
	return s.update(ctx, e, func(*v1alpha1.BackendPoolStatus) {})
}

// Apply writes a whole status, and returns the object's new resource version. It names the
// version that it knows, because the API server does not compare UIDs when a status is written:
// without, a BackendPool that was made anew under the name would get the status of the old one.
// Where the object has moved on, it is read again, and written if it is still the same. Where the
// status that stands is not of our own, another process has written it: what that one has
// recorded is kept, and its status returned.
func (s *Statuses) Apply(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus, ours own) (is string, anothers *v1alpha1.BackendPoolStatus, err error) {
	for range 5 {
		now, err := s.applyOnce(ctx, ref, version, status)
		switch {
		case err == nil:
			return now, anothers, nil
		case isGone(err):
			return version, anothers, ErrGone
		case !errors.Is(err, ErrConflict):
			return version, anothers, notWritten(ref, err)
		}
		p, err := s.read(ctx, ref)
		if err != nil {
			return version, anothers, err
		}
		version = p.ResourceVersion
		if !ours.has(&p.Status) {
			members.Unite(status, &p.Status)
			anothers = p.Status.DeepCopy()
			ours = ours.with(&p.Status).with(status)
		}
	}
	return version, anothers, notWritten(ref, errMovesOn)
}

func notWritten(ref poolschedule.Ref, err error) error {
	return fmt.Errorf("writing the status of BackendPool %s: %w", key(ref.Namespace, ref.Name), err)
}

func (s *Statuses) applyOnce(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	return s.api.Apply(ctx, ref, version, status)
}

// setFinalizer sets Weir's finalizer, or takes it away. If the object turns out to have a status that
// this process has neither read nor written, that is read when the object is seen again.
func (s *Statuses) setFinalizer(ctx context.Context, e *Entry, p *v1alpha1.BackendPool, want bool) error {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	if p.ResourceVersion != e.version { // others' finalizers may be newer than what is seen
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
