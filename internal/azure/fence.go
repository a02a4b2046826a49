// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"weir.dev/weir/internal/leader"
)

// fencedTransport sends writes over connections that check the fence before every byte: a process may be
// suspended after the pipeline's check, and a DELETE has no body to check in. Reads are not fenced.
type fencedTransport struct {
	ReadTransport, WriteTransport *http.Transport

	fence *leader.Fence
}

// newDefaultFencedTransport returns a Transport with default transports.
func newDefaultFencedTransport(fence *leader.Fence) fencedTransport {
	return newFencedTransport(newHTTPTransport(), newHTTPTransport(), fence)
}

// newFencedTransport returns a Transport and modifies the dialer of writes.
func newFencedTransport(reads, writes *http.Transport, fence *leader.Fence) fencedTransport {
	dial := writes.DialContext
	writes.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c, fence}, nil
	}
	return fencedTransport{reads, writes, fence}
}

// RoundTrip implements http.RoundTripper.
func (t fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return t.ReadTransport.RoundTrip(req)
	}
	resp, err := t.WriteTransport.RoundTrip(req)
	if err == nil || errors.Is(err, leader.ErrNotLeader) {
		return resp, err
	}
	// A transport may report a closed connection instead of the fence's error.
	if over := t.fence.CheckWrite(); over != nil {
		err = fmt.Errorf("%w: %w", err, over)
	}
	return resp, err
}

// conn is the last check before the kernel. A transport can delay a request in a buffer, in TLS or
// until it has a connection.
type conn struct {
	net.Conn

	fence *leader.Fence
}

// Write implements io.Writer.
func (c conn) Write(p []byte) (int, error) {
	if err := c.fence.CheckWrite(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// maxHeaderBytes limits response headers, including 1xx. Azure sends less than 8 KiB; 1 MiB of tiny
// headers takes 10 MiB of memory.
const maxHeaderBytes = 64 << 10

// newHTTPTransport detects a dead connection within 15 s. If a firewall drops one silently, every attempt
// would wait for its deadline.
func newHTTPTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxHeaderBytes
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	return t
}
