// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"errors"

	"weir.dev/weir/internal/fault"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes. Stale, Retriable, Terminal and Shutdown are the classes of a Fault.
const (
	Written   Outcome = "Written"   // Azure shows what was written
	Unchanged Outcome = "Unchanged" // the pool was level already
	Stale     Outcome = "Stale"     // the pool or its load balancer is gone
	Retriable Outcome = "Retriable" // this layer tries again while the budget lasts
	Terminal  Outcome = "Terminal"  // trying again cannot help
	Refused   Outcome = "Refused"   // a pool that Weir does not write
	Postponed Outcome = "Postponed" // no attempt was made; something of our own was not ready
	Shutdown  Outcome = "Shutdown"  // the lane is stopping
)

// outcomeOf returns the outcome that a fault's class stands for.
func outcomeOf(f *fault.Fault) Outcome {
	switch f.Class {
	case fault.Stale:
		return Stale
	case fault.Retriable:
		return Retriable
	case fault.Shutdown:
		return Shutdown
	}
	return Terminal
}

// ErrNotReady marks what kept an attempt from starting or from going on before
// anything was written, and is not Azure's: nobody's budget pays for it.
var ErrNotReady = errors.New("waiting")

// retriableError marks an error that is not Azure's and leaves a write's fate open:
// the next read settles it. Without the mark such an error is terminal.
type retriableError struct{ error }

func (e *retriableError) Unwrap() error { return e.error }

// newRetriableBackendPoolUpdateError marks err; nil stays nil.
func newRetriableBackendPoolUpdateError(err error) error {
	if err == nil {
		return nil
	}
	return &retriableError{err}
}

// isRetriableBackendPoolUpdateError reports whether the mark is in err's chain.
func isRetriableBackendPoolUpdateError(err error) bool {
	_, ok := errors.AsType[*retriableError](err)
	return ok
}

// faultOf classifies what an attempt returned. A mark of this room counts before the
// fault of the call that it may wrap.
func faultOf(err error) *fault.Fault {
	if isRetriableBackendPoolUpdateError(err) {
		return fault.Classify(fault.Answer{OutcomeUnknown: true}, err)
	}
	return fault.From(err)
}

// ErrorName tells failures apart that people need to hear of.
func ErrorName(f *fault.Fault) string {
	if f == nil {
		return ""
	}
	return string(f.Class) + " " + f.Code
}
