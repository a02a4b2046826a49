// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"weir.dev/weir/internal/fault"
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
	if f := classifyError(marked); f.Class != fault.Retriable || f.Code != fault.CodeOutcomeUnknown {
		t.Errorf("a marked error is %s %s", f.Class, f.Code)
	}
	if f := classifyError(io.ErrUnexpectedEOF); f.Class != fault.Terminal {
		t.Errorf("an error that nobody knows is %s", f.Class)
	}
	conflict := fault.Classify(fault.Failure{Status: 400}, io.EOF)
	if f := classifyError(newRetriableBackendPoolUpdateError(conflict)); f.Class != fault.Retriable {
		t.Errorf("the mark counts before the fault that it wraps: got %s", f.Class)
	}
}
