// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"sync"
	"time"
)

const checksPerWindow = 20

// Fence tracks the leadership of this process. It is safe for concurrent use. A nil Fence, without
// leader election, always allows writes.
type Fence struct {
	window time.Duration
	clock  func() time.Duration

	mu   sync.Mutex // guards the fields below
	term term
	// observedLease is the Lease as last read while another process leads; it has not changed since observedAt.
	observedLease string
	observedAt    time.Duration
}

// NewFence returns the Fence of a process that is not the leader yet. Writes are allowed for window
// after the request of a successful renewal; window must be shorter than the lease by the duration
// of a write. elapsed is a monotonic clock that includes time asleep.
func NewFence(window time.Duration, elapsed func() time.Duration) *Fence {
	return &Fence{window: window, clock: elapsed, observedAt: elapsed()}
}

// ReadClock reads the clock. Read it before requesting a renewal.
func (f *Fence) ReadClock() time.Duration { return f.clock() }

// RecordRenew records a renewal; requestedAt is the clock reading before its request. The first one
// starts the leadership.
func (f *Fence) RecordRenew(in Epoch, requestedAt time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.withRenew(in, requestedAt, f.window)
}

// EndTerm is final: later renewals have no effect.
func (f *Fence) EndTerm(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.withEnd(reason)
}

// CheckWrite returns an error that wraps ErrNotLeader if no write may be sent.
func (f *Fence) CheckWrite() error {
	if f == nil {
		return nil
	}
	return f.currentTerm().checkWrite()
}

// EndReason returns why the leadership has ended, or nil.
func (f *Fence) EndReason() error {
	if f == nil {
		return nil
	}
	return f.currentTerm().endReason
}

// Epoch returns the current epoch, and whether this process leads.
func (f *Fence) Epoch() (Epoch, bool) {
	if f == nil {
		return Epoch{}, false
	}
	t := f.currentTerm()
	return t.epoch, t.checkWrite() == nil
}

func (f *Fence) currentTerm() term {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.updateAt(f.clock(), f.window)
	return f.term
}

// Watch calls lost once the leadership has ended, or returns when ctx is done. A suspended process
// reacts as soon as it resumes.
func (f *Fence) Watch(ctx context.Context, lost func(reason error)) {
	tick := time.NewTicker(f.window / checksPerWindow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if reason := f.EndReason(); reason != nil {
				lost(reason)
				return
			}
		}
	}
}
