// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// slowLink is an in-process network in virtual time that periodically breaks all connections.
type slowLink struct {
	bytesPerSecond int
	roundTrip      time.Duration // round-trip time
	breakInterval  time.Duration // time between breaks of all connections
	conns          chan net.Conn
	begun          time.Time
	end            context.Context //nolint:containedctx // of the network
	close          context.CancelFunc

	mu          sync.Mutex
	carried     int64 // bytes, both directions
	connections int   // connections
}

func newLink(bytesPerSecond int, back, breaks time.Duration) *slowLink {
	l := &slowLink{bytesPerSecond: bytesPerSecond, roundTrip: back, breakInterval: breaks, conns: make(chan net.Conn), begun: time.Now()}
	l.end, l.close = context.WithCancel(context.Background())
	return l
}

func (l *slowLink) dialLink(ctx context.Context, _, _ string) (net.Conn, error) {
	time.Sleep(l.roundTrip)
	near, in := net.Pipe()
	out, far := net.Pipe()
	select {
	case l.conns <- far:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	l.connections++
	l.mu.Unlock()
	end := sync.OnceFunc(func() { _, _, _, _ = near.Close(), in.Close(), out.Close(), far.Close() })
	broken := time.AfterFunc(l.breakInterval-time.Since(l.begun)%l.breakInterval, end)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			defer broken.Stop()
			defer end()
			l.copySlowly(way[1], way[0])
		}()
	}
	return near, nil
}

// Half a second's bytes at a time.
func (l *slowLink) copySlowly(to io.Writer, from io.Reader) {
	buf := make([]byte, l.bytesPerSecond/2)
	for {
		n, err := from.Read(buf)
		time.Sleep(time.Duration(n) * time.Second / time.Duration(l.bytesPerSecond))
		l.mu.Lock()
		l.carried += int64(n)
		l.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Accept, Close and Addr implement net.Listener for the far end.
func (l *slowLink) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.end.Done():
		return nil, net.ErrClosed
	}
}

func (l *slowLink) Close() error { l.close(); return nil }

func (l *slowLink) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }
