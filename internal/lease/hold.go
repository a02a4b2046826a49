// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/sleep"
)

// hold is one acquisition. Shared.mu guards it.
type hold struct {
	lanes int       // inside
	end   time.Time // of the term
	// lost is final for the current workers: another process may have written in the meantime.
	lost    error
	left    chan struct{}      // closed when the last worker has left
	stop    context.CancelFunc // stops the renewals
	failing bool
}

var errLapsed = errors.New("the resource lease ran out: no renewal came through")

// covers requires a third of the term, longer than the requests of one write take.
func (h *hold) covers(now time.Time, term time.Duration) bool {
	return h.lost == nil && h.end.Sub(now) > term/3
}

func (s *Shared) valid(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held == h && h.covers(time.Now(), s.term)
}

// leave releases the Lease after the last worker. No worker acquires it in the meantime.
func (s *Shared) leave(h *hold) {
	if s.leftOthers(h) {
		return
	}
	_ = s.lock(context.Background()) // fails only when the context ends
	defer s.unlock()
	if s.leftOthers(h) { // a worker entered during a renewal
		return
	}
	s.mu.Lock()
	h.lanes, s.held = 0, nil
	s.mu.Unlock()
	h.stop()
	if err := s.release(); err != nil {
		s.log.Warn("the resource lease could not be released; it ends by itself", "err", err)
	}
	s.mu.Lock()
	s.freed = time.Now()
	s.mu.Unlock()
	close(h.left)
}

// leftOthers returns false for the last worker.
func (s *Shared) leftOthers(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.lanes == 1 {
		return false
	}
	h.lanes--
	return true
}

// renew runs every third of the term, until ctx is done or the Lease is lost. A failed request is
// retried after a thirtieth.
func (s *Shared) renew(ctx context.Context, h *hold) {
	for wait := s.term / 3; wait > 0; {
		if sleep.For(ctx, wait) != nil {
			return
		}
		if s.lock(ctx) != nil {
			return
		}
		if ctx.Err() == nil { // otherwise the last worker has released it
			end, err := s.request(ctx)
			wait = s.renewed(h, end, err)
		}
		s.unlock()
	}
}

// renewed returns the delay before the next renewal; zero means none.
func (s *Shared) renewed(h *hold, end time.Time, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if held, ok := errors.AsType[*HeldError](err); ok {
		h.lost = held
	} else if !now.Before(h.end) { // another process may have held it in between
		h.lost = errLapsed
	}
	switch {
	case h.lost != nil:
		s.refuse(h.lost, now)
		return 0
	case err != nil && !h.failing:
		s.log.Warn("the resource lease could not be renewed; it is tried again", "err", err, "end", h.end)
		fallthrough
	case err != nil:
		h.failing = true
		return s.term / 30
	case h.failing:
		s.log.Info("the resource lease is renewed again")
	}
	h.end, h.failing = end, false
	return s.term / 3
}

// request counts the term from before the request.
func (s *Shared) request(ctx context.Context) (end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	end = time.Now().Add(s.term)
	return end, s.holder.Acquire(ctx)
}

func (s *Shared) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), callDeadline)
	defer cancel()
	return s.holder.Release(ctx)
}

// note requires s.mu.
func (s *Shared) note(err error, now time.Time) {
	if err != nil {
		s.refuse(err, now)
		return
	}
	if s.refusal != nil {
		s.log.Info("the resource lease is ours again")
	}
	s.refusal, s.askAt = nil, time.Time{}
}

// refuse logs the transition. It requires s.mu.
func (s *Shared) refuse(err error, now time.Time) {
	if s.refusal == nil {
		s.log.Warn("no resource lease: backend pools wait", "err", err)
	}
	s.refusal, s.askAt = err, now.Add(refusalHolds)
	s.refusals++
}

// Refusals returns how often the Lease was held elsewhere, or lost.
func (s *Shared) Refusals() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals
}

// Held reports whether this process holds the Lease.
func (s *Shared) Held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held != nil && s.held.lost == nil
}

// lock acquires the slot. It fails if ctx is done, even if the slot is free.
func (s *Shared) lock(ctx context.Context) error {
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

func (s *Shared) unlock() { <-s.slot }
