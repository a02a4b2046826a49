// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"sync"
	"time"
)

// looks is how often Watch asks within a window.
const looks = 20

// Fence is the lead of this process. Its methods may be called from any goroutine. A nil
// Fence is that of a process without an election, which may always write.
type Fence struct {
	window  time.Duration
	elapsed func() time.Duration

	mu   sync.Mutex // guards term; held for moments
	term term
}

// NewFence returns the Fence of a process that does not lead yet. Writes leave for as long
// as the window after a renewal was asked for; it has to be shorter than the lease by what a
// write may take. Elapsed is the time that has passed since any point, the time for which
// the machine slept included.
func NewFence(window time.Duration, elapsed func() time.Duration) *Fence {
	return &Fence{window: window, elapsed: elapsed}
}

// Elapsed reads the clock. Whoever asks for a renewal reads it before.
func (f *Fence) Elapsed() time.Duration { return f.elapsed() }

// Renewed tells of a renewal that succeeded: the lease is ours in that epoch, and was when
// this was asked for. The first one begins the lead.
func (f *Fence) Renewed(in Epoch, asked time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.renewed(in, asked, f.window)
}

// Ends ends the lead, if it has begun. No later renewal brings it back.
func (f *Fence) Ends(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.term = f.term.ended(why)
}

// MayWrite returns nil if a write may leave now, and else an error with ErrNotLeading in
// its chain.
func (f *Fence) MayWrite() error {
	if f == nil {
		return nil
	}
	return f.now().mayWrite()
}

// Over returns why the lead has ended; nil if it has not, or has not begun.
func (f *Fence) Over() error {
	if f == nil {
		return nil
	}
	return f.now().over
}

// Epoch returns the epoch that this process leads in, if it does.
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

// Watch calls lost with why the lead has ended, once it has, or returns when the context is
// done. A process that was stopped hears of it as soon as it goes on.
func (f *Fence) Watch(ctx context.Context, lost func(why error)) {
	tick := time.NewTicker(f.window / looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if why := f.Over(); why != nil {
				lost(why)
				return
			}
		}
	}
}
