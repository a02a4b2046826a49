// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// leaseLock is one acquisition. Shared.mu guards it.
type leaseLock struct {
	workers int       // inside
	end     time.Time // of the term
	// err is final for the current workers: another process may have written in the meantime.
	err           error
	done          chan struct{}      // closed when the last worker has left
	cancel        context.CancelFunc // stops the renewals
	hasRenewError bool
}

var errExpired = errors.New("the resource lease ran out: no renewal came through")

// canWrite requires a third of the term, longer than the requests of one write take.
func (l *leaseLock) canWrite(now time.Time, term time.Duration) bool {
	return l.err == nil && l.end.Sub(now) > term/3
}

func (s *SharedLease) isValid(h *leaseLock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current == h && h.canWrite(time.Now(), s.term)
}

// removeWorker releases the Lease after the last worker. No worker acquires it in the meantime.
func (s *SharedLease) removeWorker(h *leaseLock) {
	if s.removeUnlessLast(h) {
		return
	}
	_ = s.acquireSlot(context.Background()) // fails only when the context ends
	defer s.releaseSlot()
	if s.removeUnlessLast(h) { // a worker entered during a renewal
		return
	}
	s.mu.Lock()
	h.workers, s.current = 0, nil
	s.mu.Unlock()
	h.cancel()
	if err := s.releaseLease(); err != nil {
		s.log.Warn("the resource lease could not be released; it expires", "err", err)
	}
	s.mu.Lock()
	s.lastRelease = time.Now()
	s.mu.Unlock()
	close(h.done)
}

// removeUnlessLast returns false for the last worker.
func (s *SharedLease) removeUnlessLast(h *leaseLock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.workers == 1 {
		return false
	}
	h.workers--
	return true
}

// renewLoop runs every third of the term, until ctx is done or the Lease is lost. A failed request is
// retried after a thirtieth.
func (s *SharedLease) renewLoop(ctx context.Context, h *leaseLock) {
	for wait := s.term / 3; wait > 0; {
		if ratelimit.Sleep(ctx, wait) != nil {
			return
		}
		if s.acquireSlot(ctx) != nil {
			return
		}
		if ctx.Err() == nil { // otherwise the last worker has released it
			end, err := s.acquireTerm(ctx)
			wait = s.recordRenew(h, end, err)
		}
		s.releaseSlot()
	}
}

// recordRenew returns the delay before the next renewal; zero means none.
func (s *SharedLease) recordRenew(h *leaseLock, end time.Time, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if holderErr, ok := errors.AsType[*HolderError](err); ok {
		h.err = holderErr
	} else if !now.Before(h.end) { // another process may have held it in between
		h.err = errExpired
	}
	switch {
	case h.err != nil:
		s.recordFailure(h.err, now)
		return 0
	case err != nil && !h.hasRenewError:
		s.log.Warn("the resource lease could not be renewed; it is tried again", "err", err, "end", h.end)
		fallthrough
	case err != nil:
		h.hasRenewError = true
		return s.term / 30
	case h.hasRenewError:
		s.log.Info("the resource lease is renewed again")
	}
	h.end, h.hasRenewError = end, false
	return s.term / 3
}

// acquireTerm counts the term from before the request.
func (s *SharedLease) acquireTerm(ctx context.Context) (end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	end = time.Now().Add(s.term)
	return end, s.holder.Acquire(ctx)
}

func (s *SharedLease) releaseLease() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return s.holder.Release(ctx)
}

// recordAcquire requires s.mu.
func (s *SharedLease) recordAcquire(err error, now time.Time) {
	if err != nil {
		s.recordFailure(err, now)
		return
	}
	if s.lastErr != nil {
		s.log.Info("the resource lease is ours again")
	}
	s.lastErr, s.nextRequestAt = nil, time.Time{}
}

// recordFailure logs the transition. It requires s.mu.
func (s *SharedLease) recordFailure(err error, now time.Time) {
	if s.lastErr == nil {
		s.log.Warn("no resource lease: backend pools wait", "err", err)
	}
	s.lastErr, s.nextRequestAt = err, now.Add(failureTTL)
	s.failureCount++
}

// FailureCount returns how often the Lease was held elsewhere, or lost.
func (s *SharedLease) FailureCount() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failureCount
}

// IsHolder reports whether this process holds the Lease.
func (s *SharedLease) IsHolder() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil && s.current.err == nil
}

// acquireSlot acquires the slot. It fails if ctx is done, even if the slot is free.
func (s *SharedLease) acquireSlot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *SharedLease) releaseSlot() { <-s.slot }
