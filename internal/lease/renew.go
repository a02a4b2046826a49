// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"time"
)

// renew renews the Lease at a third of its term until the context is done. A request
// that fails is made again at a tenth of that.
func (s *Shared) renew(ctx context.Context) {
	timer := time.NewTimer(s.term / 3)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if s.lock(ctx) != nil {
			return
		}
		next := s.term / 3
		if end, err := s.request(ctx); err == nil {
			s.mu.Lock()
			s.end = end
			s.mu.Unlock()
		} else if ctx.Err() == nil {
			next /= 10
			s.lost(err)
		}
		s.unlock()
		timer.Reset(next)
	}
}

// request acquires or renews the Lease, and returns when its term ends, counted from
// before the request.
func (s *Shared) request(ctx context.Context) (end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	end = time.Now().Add(s.term)
	return end, s.holder.Acquire(ctx)
}

// lost notes a renewal that failed. Somebody else's Lease is lost at once.
func (s *Shared) lost(err error) {
	s.log.Warn("the resource lease could not be renewed", "err", err)
	if _, held := errors.AsType[*HeldError](err); held {
		s.mu.Lock()
		s.end = time.Time{}
		s.mu.Unlock()
	}
}

// Valid reports whether a write may start: the Lease is ours for at least a third of
// its term, which is longer than the requests of one write can last.
func (s *Shared) Valid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes > 0 && s.writable(time.Now())
}

func (s *Shared) writable(now time.Time) bool { return s.end.Sub(now) > s.term/3 }

// Refusals counts the requests to acquire the Lease that failed.
func (s *Shared) Refusals() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusals
}

// Held reports whether a lane is in.
func (s *Shared) Held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes > 0
}

func (s *Shared) lock(ctx context.Context) error {
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Shared) unlock() { <-s.slot }
