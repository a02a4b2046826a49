// SPDX-License-Identifier: Apache-2.0

package lead

import "io"

// Body returns the body of a request, which cannot be read once the lead is over. Between
// the question whether a request may leave and its first byte, a connection may have to be
// made, or the process be stopped; what then arrives is cut off, and not carried out.
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
