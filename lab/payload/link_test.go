// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// link is an in-process network in virtual time with a bandwidth per direction, a round-trip time,
// and periodic breaks of all connections.
type link struct {
	bytesPerSecond int
	back           time.Duration // round-trip time
	breaks         time.Duration // time between breaks of all connections
	conns          chan net.Conn
	begun          time.Time
	end            context.Context //nolint:containedctx // of the network
	close          context.CancelFunc

	mu      sync.Mutex
	carried int64 // bytes, both directions
	made    int   // connections
}

func newLink(bytesPerSecond int, back, breaks time.Duration) *link {
	l := &link{bytesPerSecond: bytesPerSecond, back: back, breaks: breaks, conns: make(chan net.Conn), begun: time.Now()}
	l.end, l.close = context.WithCancel(context.Background())
	return l
}

// dial opens a connection that lives until the next break.
func (l *link) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	time.Sleep(l.back)
	near, in := net.Pipe()
	out, far := net.Pipe()
	select {
	case l.conns <- far:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	l.made++
	l.mu.Unlock()
	end := sync.OnceFunc(func() { _, _, _, _ = near.Close(), in.Close(), out.Close(), far.Close() })
	broken := time.AfterFunc(l.breaks-time.Since(l.begun)%l.breaks, end)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			defer broken.Stop()
			defer end()
			l.carry(way[1], way[0])
		}()
	}
	return near, nil
}

// carry transfers half a second's bytes at a time.
func (l *link) carry(to io.Writer, from io.Reader) {
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
func (l *link) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.end.Done():
		return nil, net.ErrClosed
	}
}

func (l *link) Close() error { l.close(); return nil }

func (l *link) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443} }
