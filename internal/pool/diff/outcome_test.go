// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
)

func TestOnlyAMarkedErrorIsRetried(t *testing.T) {
	if newRetriableBackendPoolUpdateError(nil) != nil {
		t.Error("no error is no error")
	}
	marked := fmt.Errorf("attempt: %w", newRetriableBackendPoolUpdateError(io.ErrUnexpectedEOF))
	if !isRetriableBackendPoolUpdateError(marked) || isRetriableBackendPoolUpdateError(io.ErrUnexpectedEOF) {
		t.Error("the mark is not found in the chain, or where there is none")
	}
	if !errors.Is(marked, io.ErrUnexpectedEOF) {
		t.Error("the mark hides its cause")
	}
	if f := classifyError(marked); f.Class != armerror.Retriable || f.Code != armerror.CodeOutcomeUnknown {
		t.Errorf("a marked error is %s %s", f.Class, f.Code)
	}
	if f := classifyError(io.ErrUnexpectedEOF); f.Class != armerror.Terminal {
		t.Errorf("an error that nobody knows is %s", f.Class)
	}
	conflict := armerror.Classify(armerror.Failure{Status: 400}, io.EOF)
	if f := classifyError(newRetriableBackendPoolUpdateError(conflict)); f.Class != armerror.Retriable {
		t.Errorf("the mark counts before the fault that it wraps: got %s", f.Class)
	}
}

// Whether a request was sent does not follow from a missing read alone: after a 412 the pool was written once.
func TestARetryAfterBeforeAnyRequest(t *testing.T) {
	err := armerror.Classify(armerror.Failure{RetryAt: time.Now().Add(time.Minute), RetryAfterPending: true}, errors.New("too early"))
	for want, r := range map[Outcome]Result{Postponed: {Observed: -1}, Retriable: {Observed: -1, HadConflict: true}} {
		if got := r.FinishAttempt(err, false, false); got.Outcome != want {
			t.Errorf("got %s, want %s", got.Outcome, want)
		}
	}
}
