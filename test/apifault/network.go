// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// network is what lies below TLS: a listener that can go and come back under its
// address, and connections that can fall silent.
type network struct {
	mu      sync.Mutex
	address string
	inner   net.Listener
	conns   map[*conn]struct{}
	// silent is closed when a black hole ends; nil if there is none.
	silent chan struct{}
}

// newNetwork listens below the range that kernels take ports of clients from, so that
// nobody takes the port while it refuses connections.
func newNetwork() (*network, error) {
	n := &network{conns: map[*conn]struct{}{}}
	var err error
	for range 50 {
		n.address = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)) //nolint:gosec // any port will do
		if n.inner, err = net.Listen("tcp", n.address); err == nil {    //nolint:noctx // it does not block
			return n, nil
		}
	}
	return nil, err
}

// relisten takes the address again.
func (n *network) relisten() (net.Listener, error) {
	var err error
	for range 100 {
		var inner net.Listener
		if inner, err = net.Listen("tcp", n.address); err == nil { //nolint:noctx // it does not block
			n.mu.Lock()
			n.inner = inner
			n.mu.Unlock()
			return n.listener(inner), nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, err
}

func (n *network) listener(inner net.Listener) net.Listener { return &listener{inner, n} }

type listener struct {
	net.Listener
	net *network
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, net: l.net, done: make(chan struct{})}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.conns[c] = struct{}{}
	return c, nil
}

type conn struct {
	net.Conn
	net  *network
	once sync.Once
	done chan struct{}
}

// Read implements net.Conn. What arrives in a black hole is kept until it ends.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.hold()
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.hold()
	return c.Conn.Write(b)
}

func (c *conn) hold() {
	c.net.mu.Lock()
	silent := c.net.silent
	c.net.mu.Unlock()
	if silent == nil {
		return
	}
	select {
	case <-silent:
	case <-c.done:
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	_ = c.Close() // as above
}

// resetAll resets every connection.
func (n *network) resetAll() {
	n.mu.Lock()
	all := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		all = append(all, c)
	}
	n.mu.Unlock()
	for _, c := range all {
		c.reset()
	}
}

// breakConn ends a connection.
func breakConn(c *tls.Conn, how Broken) {
	switch how {
	case Reset:
		if below, ok := c.NetConn().(*conn); ok {
			below.reset()
		}
	case GoAway:
		// Streams up to the highest number may have been processed: the client must not
		// believe that a write was not.
		frame := []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(frame[9:], math.MaxInt32)
		_, _ = c.Write(frame) // it ends in any case
		_ = c.Close()         // as above
	case Closed:
		_ = c.Close() // it may be closed already
	case Whole, Draining:
	}
}
