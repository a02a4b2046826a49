// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"

	"weir.dev/weir/internal/armerror"
)

// Outcome is how an attempt ended.
type Outcome string

// Stale, Retriable, Terminal and Shutdown correspond to fault classes.
const (
	Written   Outcome = "Written"   // Azure shows what was written
	Unchanged Outcome = "Unchanged" // the pool was already in sync
	Stale     Outcome = "Stale"     // the pool or its load balancer is gone
	Retriable Outcome = "Retriable" // the worker retries within the retry limit
	Terminal  Outcome = "Terminal"  // a retry cannot help
	Rejected  Outcome = "Refused"   // Weir does not write this pool
	Postponed Outcome = "Postponed" // no attempt: one of Weir's own dependencies was not ready
	Shutdown  Outcome = "Shutdown"  // the worker is stopping
)

func newOutcome(f *armerror.Fault) Outcome {
	switch f.Class {
	case armerror.Stale:
		return Stale
	case armerror.Retriable:
		return Retriable
	case armerror.Shutdown:
		return Shutdown
	}
	return Terminal
}

// ErrNotReady marks an attempt that stopped before a write for a reason outside Azure. It consumes
// no retry.
var ErrNotReady = errors.New("waiting")

// retriableError marks an error outside Azure that leaves a write's result unknown. Unmarked ones
// are terminal.
type retriableError struct{ error }

func (e *retriableError) Unwrap() error { return e.error }

func newRetriableBackendPoolUpdateError(err error) error {
	if err == nil {
		return nil
	}
	return &retriableError{err}
}

func isRetriableBackendPoolUpdateError(err error) bool {
	_, ok := errors.AsType[*retriableError](err)
	return ok
}

// classifyError classifies an attempt's error. The mark takes precedence over a wrapped fault.
func classifyError(err error) *armerror.Fault {
	if isRetriableBackendPoolUpdateError(err) {
		return armerror.Classify(armerror.Failure{ResultUnknown: true}, err)
	}
	return armerror.FromError(err)
}

// ErrorName identifies failures that are reported once.
func ErrorName(f *armerror.Fault) string {
	if f == nil {
		return ""
	}
	return string(f.Class) + " " + f.Code
}
