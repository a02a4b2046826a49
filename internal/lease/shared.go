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
	// turn is how long lanes may enter before the Lease has to be left to others.
	turn = time.Minute
	// breath is how long it is left to others after a turn.
	breath = 5 * time.Second
	// refusalHolds is how long a refusal is believed, so that many lanes cost no more
	// requests than one.
	refusalHolds = time.Second
	// callDeadline bounds one request. An acquisition and a release have to fit into
	// the time that a process has to stop.
	callDeadline = 5 * time.Second
	// patience is how long Enter waits for the end of a turn.
	patience = 10 * time.Second
)

// Holder acquires and releases the Lease; see leases.Resource. It is called by one
// goroutine at a time.
type Holder interface {
	// Acquire takes the Lease for a term from now on, or renews it. It returns a
	// *HeldError if somebody else holds it. After any other error it may be ours.
	Acquire(ctx context.Context) error
	// Release gives the Lease back, if it is what this Holder acquired.
	Release(ctx context.Context) error
}

// HeldError says that somebody else holds the Lease. Its text is the same as long as
// the same one holds it.
type HeldError struct {
	Lease, Holder string
	Until         time.Time // unless it is renewed
}

// Error names the Lease and who holds it.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the lease %s is held by %q", e.Lease, e.Holder)
}

// errTurn is why nobody may enter whose patience is over.
var errTurn = errors.New("the resource lease is left to other controllers for a moment, when the writes under way have ended")

// Shared is the Lease of this process. Its methods may be called from any goroutine.
type Shared struct {
	holder Holder
	term   time.Duration
	log    *slog.Logger
	// slot is held during requests, which take time; it is taken before mu.
	slot chan struct{}

	mu    sync.Mutex // guards all below; held for moments
	held  *hold      // nil while no lane is in
	began time.Time  // of the turn: when its first acquisition was asked for
	freed time.Time  // when it was last released
	// refusal is why the Lease was last refused or lost, nil once it was acquired
	// again; the next request may be made at askAt.
	refusal  error
	askAt    time.Time
	refusals uint64
}

// NewShared returns a Lease that nobody has entered. Term is how long Holder acquires
// it for.
func NewShared(holder Holder, term time.Duration, log *slog.Logger) *Shared {
	return &Shared{holder: holder, term: term, log: log, slot: make(chan struct{}, 1)}
}

// Enter takes part in the Lease. It waits for the end of a turn, though not for long,
// and returns an error that says who holds the Lease, or why it cannot be had. valid
// reports whether a write may still start: once the Lease was lost, never again.
// leave has to be called, once; it returns when the last one's release is done.
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

// join enters a Lease that is held, or returns what has to be waited for, or neither
// if it has to be acquired.
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

// await waits for an event, but not beyond a time.
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

// acquire takes the Lease as the first to enter; nil if another lane was faster or has
// been refused.
func (s *Shared) acquire(ctx context.Context) (*hold, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if !s.mayAsk(time.Now()) {
		return nil, nil
	}
	// A request that is cut off may have been served, so it is not cut off.
	end, err := s.request(context.WithoutCancel(ctx))
	if _, held := errors.AsType[*HeldError](err); err != nil && !held {
		_ = s.release() // what may be ours all the same; if this fails, too, the next request finds it ours
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.note(err, now); err != nil {
		return nil, err
	}
	if now.Sub(s.freed) >= breath {
		s.began = now
		if now.Before(end) { // the machine may have slept before it had the answer
			s.began = end.Add(-s.term)
		}
	}
	renewal, stop := context.WithCancel(context.Background())
	s.held = &hold{lanes: 1, end: end, left: make(chan struct{}), stop: stop}
	go s.renew(renewal, s.held) // until the last has left
	return s.held, nil
}

// mayAsk reports whether the Lease is to be acquired now; join has said so before.
func (s *Shared) mayAsk(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held == nil && !s.resting(now) && !now.Before(s.askAt)
}

// over reports whether a turn has ended, so that nobody may enter; resting, whether it
// is also left to others just now. The caller holds s.mu.
func (s *Shared) over(now time.Time) bool { return now.Sub(s.began) >= turn }

func (s *Shared) resting(now time.Time) bool {
	return s.held == nil && s.over(now) && now.Before(s.freed.Add(breath))
}
