// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/sleep"
)

// hold is one acquisition of the Lease; mu of Shared guards it.
type hold struct {
	lanes int       // that are in
	end   time.Time // of the term
	// lost is why the Lease is not ours any more. Then it never is again for those
	// that are in: somebody else may have written meanwhile.
	lost error
	left chan struct{}      // closed when the last lane has left
	stop context.CancelFunc // of the renewals
	// failing is true while renewals fail.
	failing bool
}

// errLapsed says that no renewal came through in time.
var errLapsed = errors.New("the resource lease ran out: no renewal came through")

// covers reports whether a write may start now: the Lease is ours for at least a third
// of its term, which is longer than the requests of one write can last.
func (h *hold) covers(now time.Time, term time.Duration) bool {
	return h.lost == nil && h.end.Sub(now) > term/3
}

func (s *Shared) valid(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held == h && h.covers(time.Now(), s.term)
}

// leave lets the last one out release the Lease. Nobody acquires it meanwhile.
func (s *Shared) leave(h *hold) {
	if s.leftOthers(h) {
		return
	}
	_ = s.lock(context.Background()) // never fails without an end of the context
	defer s.unlock()
	if s.leftOthers(h) { // who came while a renewal was under way
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

// leftOthers leaves if others stay in.
func (s *Shared) leftOthers(h *hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.lanes == 1 {
		return false
	}
	h.lanes--
	return true
}

// renew renews the Lease at a third of its term until the context is done or the
// Lease is lost. A request that fails is made again at a tenth of that.
func (s *Shared) renew(ctx context.Context, h *hold) {
	for wait := s.term / 3; wait > 0; {
		if sleep.For(ctx, wait) != nil {
			return
		}
		if s.lock(ctx) != nil {
			return
		}
		if ctx.Err() == nil { // else the last has left, and released it
			end, err := s.request(ctx)
			wait = s.renewed(h, end, err)
		}
		s.unlock()
	}
}

// renewed notes what became of a renewal, and returns when the next one is due; zero
// is never.
func (s *Shared) renewed(h *hold, end time.Time, err error) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if held, ok := errors.AsType[*HeldError](err); ok {
		h.lost = held
	} else if !now.Before(h.end) { // whoever took it meanwhile may have left it again
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

// request acquires or renews the Lease, and returns when its term ends, counted from
// before the request.
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

// note remembers what became of a request to acquire. The caller holds s.mu.
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

// refuse counts a refusal, or a loss, and says so at the transition alone. The caller
// holds s.mu.
func (s *Shared) refuse(err error, now time.Time) {
	if s.refusal == nil {
		s.log.Warn("no resource lease: backend pools wait", "err", err)
	}
	s.refusal, s.askAt = err, now.Add(refusalHolds)
	s.refusals++
}

// Refusals counts how often the Lease was refused to us, or lost.
func (s *Shared) Refusals() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals
}

// Held reports whether the Lease is ours.
func (s *Shared) Held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held != nil && s.held.lost == nil
}

// lock waits for the slot. Whoever is stopping does not get it, free or not.
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
