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

// ErrNotReady marks an attempt that stopped before a write for a reason outside Azure. It consumes no retry.
var ErrNotReady = errors.New("waiting")

func newRetriableFault(err error) *armerror.Fault {
	f := armerror.Classify(armerror.Failure{ResultUnknown: true}, err)
	f.MayBeApplied = false // the write has ended
	return f
}

// ErrorName identifies failures that are reported once.
func ErrorName(f *armerror.Fault) string {
	if f == nil {
		return ""
	}
	return string(f.Class) + " " + f.Code
}

// IsOverlapRejection reports whether Azure rejected a request because another write is running.
func IsOverlapRejection(f *armerror.Fault) bool {
	return f != nil && !f.OperationFailed && (f.Code == "RetryableErrorDueToAnotherOperation" || f.Code == "AnotherOperationInProgress")
}
