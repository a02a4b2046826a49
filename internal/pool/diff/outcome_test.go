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
	for want, err := range map[Outcome]error{
		Retriable: fmt.Errorf("attempt: %w", newRetriableFault(armerror.Classify(armerror.Failure{Status: 400}, io.ErrUnexpectedEOF))),
		Terminal:  io.ErrUnexpectedEOF,
	} {
		r := Result{Outcome: Written}.FinishAttempt(err, false, false)
		if r.Outcome != want || !errors.Is(r.Fault, io.ErrUnexpectedEOF) {
			t.Errorf("%v: got %s, %v, want %s", err, r.Outcome, r.Fault, want)
		}
	}
	r := Result{pendingWrites: pendingWrites{pendingEtag: "2", previousEtag: "1"}}.FinishAttempt(newRetriableFault(io.EOF), false, false)
	if r.Fault.Code != armerror.CodeOutcomeUnknown || r.pendingEtag != "" {
		t.Errorf("got %s, and a write that may still land: %q", r.Fault.Code, r.pendingEtag)
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
