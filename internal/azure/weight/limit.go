// SPDX-License-Identifier: Apache-2.0

package weight

import (
	"fmt"
	"io"
)

// LimitBody returns a body that fails after MaxBytes.
func LimitBody(body io.ReadCloser) io.ReadCloser {
	return &limitedBody{ReadCloser: body, remaining: MaxBytes}
}

// NewSizeError returns the error for a response larger than MaxBytes.
func NewSizeError() error {
	return &LimitError{Reason: fmt.Sprintf("the response is larger than %d MiB", MaxBytes>>20)}
}

// limitedBody fails where io.LimitReader would return EOF.
type limitedBody struct {
	io.ReadCloser
	remaining int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.remaining < 0 {
		return 0, NewSizeError()
	}
	if len(p) > b.remaining+1 {
		p = p[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.remaining -= n; b.remaining < 0 {
		return n, NewSizeError()
	}
	return n, err
}
