// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"sync"
	"time"
)

const looks = 20

// Fence tracks the leadership of this process. It is safe for concurrent use. A nil Fence, without
// leader election, always allows writes.
type Fence struct {
	window  time.Duration
	elapsed func() time.Duration

	mu   sync.Mutex // guards term
	term term
}

// NewFence returns the Fence of a process that is not the leader yet. Writes are allowed for window
// after the request of a successful renewal; window must be shorter than the lease by the duration
// of a write. elapsed is a monotonic clock that includes time asleep.
func NewFence(window time.Duration, elapsed func() time.Duration) *Fence {
	return &Fence{window: window, elapsed: elapsed}
}

// Elapsed reads the clock. Read it before requesting a renewal.
func (f *Fence) Elapsed() time.Duration { return f.elapsed() }

// Renewed records a renewal; requestedAt is the clock reading before its request. The first one
// starts the leadership.
func (f *Fence) Renewed(in Epoch, requestedAt time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.renewed(in, requestedAt, f.window)
}

// Ends is final: later renewals have no effect.
func (f *Fence) Ends(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.ended(reason)
}

// MayWrite returns an error that wraps ErrNotLeading if no write may be sent.
func (f *Fence) MayWrite() error {
	if f == nil {
		return nil
	}
	return f.now().mayWrite()
}

// Over returns why the leadership has ended, or nil.
func (f *Fence) Over() error {
	if f == nil {
		return nil
	}
	return f.now().over
}

// Epoch returns the current epoch, and whether this process leads.
func (f *Fence) Epoch() (Epoch, bool) {
	if f == nil {
		return Epoch{}, false
	}
	t := f.now()
	return t.epoch, t.mayWrite() == nil
}

func (f *Fence) now() term {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.at(f.elapsed(), f.window)
	return f.term
}

// Watch calls lost once the leadership has ended, or returns when ctx is done. A suspended process
// reacts as soon as it resumes.
func (f *Fence) Watch(ctx context.Context, lost func(reason error)) {
	tick := time.NewTicker(f.window / looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if reason := f.Over(); reason != nil {
				lost(reason)
				return
			}
		}
	}
}
