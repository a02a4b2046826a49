// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// turn is how long lanes may enter before the Lease has to be released.
	turn = time.Minute
	// breath is how long the Lease is left to others after a turn.
	breath = 5 * time.Second
	// refusalHolds is how long a refusal is believed, so that many lanes cost no more
	// requests than one.
	refusalHolds = time.Second
	// callDeadline bounds one request.
	callDeadline = 10 * time.Second
)

// Holder acquires and releases the Lease; see kube.ResourceLease. It is called by one
// goroutine at a time.
type Holder interface {
	// Acquire takes the Lease for a term from now on, or renews it. It returns a
	// *HeldError if somebody else holds it.
	Acquire(ctx context.Context) error
	// Release gives the Lease back, if it is ours.
	Release(ctx context.Context) error
}

// HeldError says that somebody else holds the Lease.
type HeldError struct {
	Lease, Holder string
	Until         time.Time
}

// Error names the Lease, its holder and when it would end.
func (e *HeldError) Error() string {
	return fmt.Sprintf("the lease %s is held by %q until %s unless renewed", e.Lease, e.Holder, e.Until.UTC().Format(time.RFC3339))
}

// Shared is the Lease of this process. Its methods may be called from any goroutine.
type Shared struct {
	holder Holder
	term   time.Duration
	log    *slog.Logger
	// slot is held during requests, which take time; it is taken before mu.
	slot chan struct{}

	mu    sync.Mutex // guards all below; held for moments
	lanes int        // that are in
	since time.Time  // when the first of them came
	end   time.Time  // of the term
	free  time.Time  // when it may be acquired again after a turn
	// left is closed when the last lane has left.
	left chan struct{}
	stop context.CancelFunc // of the renewal
	// refusal is why the last request to acquire failed, believed until refusedTo.
	refusal   error
	refusedTo time.Time
	refusals  uint64
}

// NewShared returns a Lease that nobody has entered. Term is how long Holder acquires
// it for.
func NewShared(holder Holder, term time.Duration, log *slog.Logger) *Shared {
	return &Shared{holder: holder, term: term, log: log, slot: make(chan struct{}, 1)}
}

// Enter takes part in the Lease. It waits while a turn ends, and returns an error that
// says who holds the Lease, or why it cannot be had. valid reports whether a write may
// still start; leave has to be called, once.
func (s *Shared) Enter(ctx context.Context) (valid func() bool, leave func(), err error) {
	for {
		in, wait, err := s.join(time.Now())
		if err == nil && wait != nil {
			err = wait(ctx)
		} else if err == nil && !in {
			in, err = s.acquire(ctx)
		}
		if err != nil {
			return nil, nil, err
		}
		if in {
			return s.Valid, s.leave, nil
		}
	}
}

// join enters a Lease that is held, or returns what has to be waited for, or neither
// if it has to be acquired.
func (s *Shared) join(now time.Time) (in bool, wait func(context.Context) error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lanes > 0 && now.Sub(s.since) < turn && s.writable(now):
		s.lanes++
		return true, nil, nil
	case s.lanes > 0:
		return false, until(s.left), nil
	case now.Before(s.free):
		return false, until(time.After(s.free.Sub(now))), nil
	case now.Before(s.refusedTo):
		return false, nil, s.refusal
	}
	return false, nil, nil
}

func until[T any](event <-chan T) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-event:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// acquire takes the Lease as the first to enter; false if another was faster.
func (s *Shared) acquire(ctx context.Context) (in bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	s.mu.Lock()
	now := time.Now()
	late := s.lanes > 0 || now.Before(s.free) || now.Before(s.refusedTo)
	s.mu.Unlock()
	if late {
		return false, nil
	}
	end, err := s.request(ctx)
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(err)
	if err != nil {
		return false, err
	}
	s.lanes, s.since, s.end, s.left = 1, time.Now(), end, make(chan struct{})
	renew, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.renew(renew) // until the last has left
	return true, nil
}

// note remembers a refusal and says so once.
func (s *Shared) note(err error) {
	if err == nil {
		if s.refusal != nil {
			s.log.Info("the resource lease is ours again")
		}
		s.refusal = nil
		return
	}
	if s.refusal == nil {
		s.log.Warn("no resource lease: backend pools wait", "err", err)
	}
	s.refusal, s.refusedTo = err, time.Now().Add(refusalHolds)
	s.refusals++
}

// leave lets the last one out release the Lease.
func (s *Shared) leave() {
	_ = s.lock(context.Background()) // never fails without an end of the context
	defer s.unlock()
	s.mu.Lock()
	s.lanes--
	last, stop := s.lanes == 0, s.stop
	if last && time.Since(s.since) >= turn {
		s.free = time.Now().Add(breath)
	}
	s.mu.Unlock()
	if !last {
		return
	}
	stop()
	ctx, cancel := context.WithTimeout(context.Background(), callDeadline)
	defer cancel()
	if err := s.holder.Release(ctx); err != nil {
		s.log.Warn("the resource lease could not be released; it ends by itself", "err", err)
	}
	s.mu.Lock()
	s.end = time.Time{}
	close(s.left)
	s.mu.Unlock()
}
