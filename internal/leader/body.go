// SPDX-License-Identifier: Apache-2.0

package leader

import "io"

// WrapBody wraps a request body so that reads fail once leadership has ended. Connecting, or a
// suspension of the process, may separate the check of a request from its first byte; a truncated
// request is not executed.
func (f *Fence) WrapBody(of io.ReadCloser) io.ReadCloser {
	if f == nil || of == nil {
		return of
	}
	return &fencedBody{of, f}
}

type fencedBody struct {
	io.ReadCloser

	fence *Fence
}

// Read implements io.Reader.
func (b *fencedBody) Read(p []byte) (int, error) {
	if err := b.fence.CheckWrite(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
