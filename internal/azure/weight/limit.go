// SPDX-License-Identifier: Apache-2.0

package weight

import (
	"fmt"
	"io"
)

// Limit returns a body that fails after MostBytes.
func Limit(body io.ReadCloser) io.ReadCloser {
	return &limitedBody{ReadCloser: body, left: MostBytes}
}

// TooLarge returns the error for a response larger than MostBytes.
func TooLarge() error {
	return &Unbearable{Why: fmt.Sprintf("the answer is larger than %d MiB", MostBytes>>20)}
}

// limitedBody fails where io.LimitReader would return EOF.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, TooLarge()
	}
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, TooLarge()
	}
	return n, err
}
