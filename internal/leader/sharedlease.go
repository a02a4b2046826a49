// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// sessionDuration is how long workers may enter.
	sessionDuration = time.Minute
	// releaseDuration is how long the Lease remains free afterwards.
	releaseDuration = 5 * time.Second
	// failureTTL caches a rejection, so that many workers cost no more requests than one.
	failureTTL = time.Second
	// requestTimeout: an acquisition and a release must fit into the shutdown time.
	requestTimeout = 5 * time.Second
	// waitTimeout limits the wait for the end of a session.
	waitTimeout = 10 * time.Second
)

// LeaseHolder acquires and releases the Lease; see k8s.ResourceLease. It is called by one goroutine at a
// time.
type LeaseHolder interface {
	// Acquire takes or renews the Lease for one term. It returns a *HolderError if another holder has
	// it. After other errors, the Lease may have been acquired.
	Acquire(ctx context.Context) error
	// Release releases the Lease if this Holder acquired it.
	Release(ctx context.Context) error
}

// HolderError means that another holder has the Lease. Its text is stable per holder.
type HolderError struct {
	Lease, Holder string
	Until         time.Time // unless renewed
}

// Error implements error.
func (e *HolderError) Error() string {
	return fmt.Sprintf("the lease %s is held by %q", e.Lease, e.Holder)
}

var errSessionEnded = errors.New("the resource lease is left to other controllers for a moment, when the writes under way have ended")

// SharedLease is the Lease of this process. It is safe for concurrent use.
type SharedLease struct {
	holder LeaseHolder
	term   time.Duration
	log    *slog.Logger
	// slot is a lock held during requests; it is taken before mu.
	slot chan struct{}

	mu           sync.Mutex // guards the fields below; never held during requests
	current      *leaseLock // nil while no worker is inside
	sessionStart time.Time  // start of the session: of the request for its first acquisition
	lastRelease  time.Time  // last release
	// lastErr is the last rejection or loss; nil after an acquisition. It applies until nextRequestAt.
	lastErr       error
	nextRequestAt time.Time
	failureCount  uint64
}

// NewSharedLease returns a Shared without workers. term is the duration of an acquisition.
func NewSharedLease(holder LeaseHolder, term time.Duration, log *slog.Logger) *SharedLease {
	return &SharedLease{holder: holder, term: term, log: log, slot: make(chan struct{}, 1)}
}

// Enter joins the Lease, acquiring it if necessary. It waits up to 10 s for the end of a session.
// valid reports whether a write may still start; once the Lease is lost it remains false. leave
// must be called exactly once; for the last worker it returns after the release.
func (s *SharedLease) Enter(ctx context.Context) (valid func() bool, leave func(), err error) {
	until := time.Now().Add(waitTimeout)
	for {
		h, wait, err := s.tryJoin(time.Now())
		if err == nil && wait != nil {
			err = wait(ctx, until)
		} else if err == nil && h == nil {
			h, err = s.acquireFirst(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		if h != nil {
			return func() bool { return s.isValid(h) }, func() { s.removeWorker(h) }, nil
		}
	}
}

// tryJoin returns nils if the Lease must be acquired.
func (s *SharedLease) tryJoin(now time.Time) (*leaseLock, func(context.Context, time.Time) error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.current
	switch {
	case s.mustWait(now):
		return nil, waitFor(time.After(s.lastRelease.Add(releaseDuration).Sub(now))), nil
	case h == nil && now.Before(s.nextRequestAt):
		return nil, nil, s.lastErr
	case h == nil:
		return nil, nil, nil
	case h.err != nil:
		return nil, nil, h.err
	case s.isSessionOver(now) || !h.canWrite(now, s.term):
		return nil, waitFor(h.done), nil
	}
	h.workers++
	return h, nil, nil
}

func waitFor[T any](event <-chan T) func(context.Context, time.Time) error {
	return func(ctx context.Context, until time.Time) error {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-event:
			return nil
		case <-timer.C:
			return errSessionEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// acquireFirst returns nil if another worker was faster or was rejected.
func (s *SharedLease) acquireFirst(ctx context.Context) (*leaseLock, error) {
	if err := s.acquireSlot(ctx); err != nil {
		return nil, err
	}
	defer s.releaseSlot()
	if !s.canRequest(time.Now()) {
		return nil, nil
	}
	// Not cancelable: a canceled request may still take effect.
	end, err := s.acquireTerm(context.WithoutCancel(ctx))
	if _, ok := errors.AsType[*HolderError](err); err != nil && !ok {
		_ = s.releaseLease() // it may have been acquired; if this fails as well, the next request renews it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.recordAcquire(err, now); err != nil {
		return nil, err
	}
	if now.Sub(s.lastRelease) >= releaseDuration {
		s.sessionStart = now
		if now.Before(end) { // the machine may have slept during the request
			s.sessionStart = end.Add(-s.term)
		}
	}
	renewal, stop := context.WithCancel(context.Background())
	s.current = &leaseLock{workers: 1, end: end, done: make(chan struct{}), cancel: stop}
	go s.renewLoop(renewal, s.current) // until the last worker has left
	return s.current, nil
}

// canRequest repeats the checks of [Shared.tryJoin] under the slot.
func (s *SharedLease) canRequest(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current == nil && !s.mustWait(now) && !now.Before(s.nextRequestAt)
}

// isSessionOver reports whether the session has ended, so that no worker may enter. It requires s.mu.
func (s *SharedLease) isSessionOver(now time.Time) bool {
	return now.Sub(s.sessionStart) >= sessionDuration
}

func (s *SharedLease) mustWait(now time.Time) bool {
	return s.current == nil && s.isSessionOver(now) && now.Before(s.lastRelease.Add(releaseDuration))
}
