// SPDX-License-Identifier: Apache-2.0

package lead

import "net"

// Conn returns a connection for writes alone, over which no byte leaves once the lead is
// over. A request without a body has nothing that could be cut off, and a transport may
// hold a whole one back: in a buffer, under its encryption, or until a connection is made.
// This is the last place that it passes before the kernel.
func (f *Fence) Conn(of net.Conn) net.Conn {
	if f == nil || of == nil {
		return of
	}
	return &conn{of, f}
}

type conn struct {
	net.Conn

	fence *Fence
}

// Write implements io.Writer.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.fence.MayWrite(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
