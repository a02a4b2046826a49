// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// turn is how long workers may enter.
	turn = time.Minute
	// breath is how long the Lease remains free afterwards.
	breath = 5 * time.Second
	// refusalHolds caches a rejection, so that many workers cost no more requests than one.
	refusalHolds = time.Second
	// callDeadline: an acquisition and a release must fit into the shutdown time.
	callDeadline = 5 * time.Second
	// patience limits the wait for the end of a session.
	patience = 10 * time.Second
)

// Holder acquires and releases the Lease; see leases.Resource. It is called by one goroutine at a
// time.
type Holder interface {
	// Acquire takes or renews the Lease for one term. It returns a *HeldError if another holder has
	// it. After other errors, the Lease may have been acquired.
	Acquire(ctx context.Context) error
	// Release releases the Lease if this Holder acquired it.
	Release(ctx context.Context) error
}

// HeldError means that another holder has the Lease. Its text is stable per holder.
type HeldError struct {
	Lease, Holder string
	Until         time.Time // unless renewed
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the lease %s is held by %q", e.Lease, e.Holder)
}

var errTurn = errors.New("the resource lease is left to other controllers for a moment, when the writes under way have ended")

// Shared is the Lease of this process. It is safe for concurrent use.
type Shared struct {
	holder Holder
	term   time.Duration
	log    *slog.Logger
	// slot is a lock held during requests; it is taken before mu.
	slot chan struct{}

	mu    sync.Mutex // guards the fields below; never held during requests
	held  *hold      // nil while no worker is inside
	began time.Time  // start of the session: of the request for its first acquisition
	freed time.Time  // last release
	// refusal is the last rejection or loss; nil after an acquisition. It applies until askAt.
	refusal  error
	askAt    time.Time
	refusals uint64
}

// NewShared returns a Shared without workers. term is the duration of an acquisition.
func NewShared(holder Holder, term time.Duration, log *slog.Logger) *Shared {
	return &Shared{holder: holder, term: term, log: log, slot: make(chan struct{}, 1)}
}

// Enter joins the Lease, acquiring it if necessary. It waits up to 10 s for the end of a session.
// valid reports whether a write may still start; once the Lease is lost it remains false. leave
// must be called exactly once; for the last worker it returns after the release.
func (s *Shared) Enter(ctx context.Context) (valid func() bool, leave func(), err error) {
	until := time.Now().Add(patience)
	for {
		h, wait, err := s.join(time.Now())
		if err == nil && wait != nil {
			err = wait(ctx, until)
		} else if err == nil && h == nil {
			h, err = s.acquire(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		if h != nil {
			return func() bool { return s.valid(h) }, func() { s.leave(h) }, nil
		}
	}
}

// join returns nils if the Lease must be acquired.
func (s *Shared) join(now time.Time) (*hold, func(context.Context, time.Time) error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held
	switch {
	case s.resting(now):
		return nil, await(time.After(s.freed.Add(breath).Sub(now))), nil
	case h == nil && now.Before(s.askAt):
		return nil, nil, s.refusal
	case h == nil:
		return nil, nil, nil
	case h.lost != nil:
		return nil, nil, h.lost
	case s.over(now) || !h.covers(now, s.term):
		return nil, await(h.left), nil
	}
	h.lanes++
	return h, nil, nil
}

func await[T any](event <-chan T) func(context.Context, time.Time) error {
	return func(ctx context.Context, until time.Time) error {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-event:
			return nil
		case <-timer.C:
			return errTurn
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// acquire returns nil if another worker was faster or was rejected.
func (s *Shared) acquire(ctx context.Context) (*hold, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if !s.mayAsk(time.Now()) {
		return nil, nil
	}
	// Not cancelable: a canceled request may still take effect.
	end, err := s.request(context.WithoutCancel(ctx))
	if _, held := errors.AsType[*HeldError](err); err != nil && !held {
		_ = s.release() // it may have been acquired; if this fails as well, the next request renews it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.note(err, now); err != nil {
		return nil, err
	}
	if now.Sub(s.freed) >= breath {
		s.began = now
		if now.Before(end) { // the machine may have slept during the request
			s.began = end.Add(-s.term)
		}
	}
	renewal, stop := context.WithCancel(context.Background())
	s.held = &hold{lanes: 1, end: end, left: make(chan struct{}), stop: stop}
	go s.renew(renewal, s.held) // until the last worker has left
	return s.held, nil
}

// mayAsk repeats the checks of [Shared.join] under the slot.
func (s *Shared) mayAsk(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held == nil && !s.resting(now) && !now.Before(s.askAt)
}

// over reports whether the session has ended, so that no worker may enter. It requires s.mu.
func (s *Shared) over(now time.Time) bool { return now.Sub(s.began) >= turn }

func (s *Shared) resting(now time.Time) bool {
	return s.held == nil && s.over(now) && now.Before(s.freed.Add(breath))
}
