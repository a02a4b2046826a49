// SPDX-License-Identifier: Apache-2.0

// Package fence sends requests so that no byte of a write leaves once this process does not lead.
package fence

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"weir.dev/weir/internal/lead"
)

// ByMethod sends writes over connections of their own, which ask the fence for every byte.
// A process may be stopped after the last question of the pipeline and before the transport
// has handed a request to the kernel; a DELETE has no body that could ask in between.
// Reads go their own way, so that one who leads no more can still hear how things stand.
type ByMethod struct {
	Reads, Writes *http.Transport

	fence *lead.Fence
}

// Transport returns one of two transports of its own.
func Transport(fence *lead.Fence) ByMethod { return New(lively(), lively(), fence) }

// New returns one of two transports, the second of which it changes.
func New(reads, writes *http.Transport, fence *lead.Fence) ByMethod {
	dial := writes.DialContext
	writes.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c, fence}, nil
	}
	return ByMethod{reads, writes, fence}
}

// RoundTrip implements http.RoundTripper.
func (t ByMethod) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return t.Reads.RoundTrip(req)
	}
	resp, err := t.Writes.RoundTrip(req)
	if err == nil || errors.Is(err, lead.ErrNotLeading) {
		return resp, err
	}
	// A transport may tell that it closed the connection, and not that a byte was held back.
	if over := t.fence.MayWrite(); over != nil {
		err = fmt.Errorf("%w: %w", err, over)
	}
	return resp, err
}

// conn is a connection over which no byte leaves once the lead is over. A request without
// a body has nothing that could be cut off, and a transport may hold a whole one back: in a
// buffer, under its encryption, or until a connection is made. This is the last place that it
// passes before the kernel.
type conn struct {
	net.Conn

	fence *lead.Fence
}

// Write implements io.Writer.
func (c conn) Write(p []byte) (int, error) {
	if err := c.fence.MayWrite(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// maxHeaderBytes bounds the headers of a response, those of 1xx included. Azure sends less than eight KiB; one MiB of tiny
// headers takes ten MiB of memory.
const maxHeaderBytes = 64 << 10

// lively returns a transport that finds out within 15 s that a connection is dead. All
// load balancers share one, and a firewall that forgets it says nothing: each attempt
// would wait on it to its deadline, and so would the next.
func lively() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxHeaderBytes
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	return t
}
