// SPDX-License-Identifier: Apache-2.0

package lead

import "io"

// Body wraps a request body so that reads fail once leadership has ended. Connecting, or a
// suspension of the process, may separate the check of a request from its first byte; a truncated
// request is not executed.
func (f *Fence) Body(of io.ReadCloser) io.ReadCloser {
	if f == nil || of == nil {
		return of
	}
	return &body{of, f}
}

type body struct {
	io.ReadCloser

	fence *Fence
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.fence.MayWrite(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}
