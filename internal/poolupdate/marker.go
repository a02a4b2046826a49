// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"

	"weir.dev/weir/internal/fault"
)

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
