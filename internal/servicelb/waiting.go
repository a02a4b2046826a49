// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
)

// Waiting says until when a Service waits. It is the work queue's back-off, kept here: each try
// ends in the middle of its request, which would be a success to the queue itself.
type Waiting struct {
	// notBefore is what Azure asked for.
	notBefore time.Time
	// failures counts those in a row that were Azure's, or the plan's.
	failures int
}

// fails returns when a Service is tried again after an error.
func (w *Waiting) fails(err error, pace backoff.Doubling, now time.Time) time.Duration {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.RetryAt.After(now) { // whatever became of the try
		w.notBefore = f.RetryAt
		return f.RetryAt.Sub(now)
	}
	w.failures++
	return pace.After(w.failures)
}

// succeeds begins the back-off anew.
func (w *Waiting) succeeds() { w.failures = 0 }

// left is how long Azure asked to wait yet; 0 or less for no longer.
func (w *Waiting) left(now time.Time) time.Duration { return w.notBefore.Sub(now) }
