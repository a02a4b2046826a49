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
	"sync/atomic"
	"time"
)

// Network is a TCP listener on this host with an address that can disappear and return, and
// connections that can break or go silent. It is safe for concurrent use.
type Network struct {
	// Address is host and port.
	Address string

	served sync.WaitGroup

	mu    sync.Mutex
	serve func(net.Listener)
	inner net.Listener
	conns map[*conn]struct{}
	// silence is closed when a black hole ends; nil if there is none.
	silence chan struct{}
}

// NewNetwork takes a port below the ephemeral range, so that no other process takes it while
// connections are refused.
func NewNetwork() (*Network, error) {
	n := &Network{conns: map[*conn]struct{}{}}
	var err error
	for range 50 {
		n.Address = fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)) //nolint:gosec // any port will do
		if n.inner, err = net.Listen("tcp", n.Address); err == nil {    //nolint:noctx // it does not block
			return n, nil
		}
	}
	return nil, err
}

// ServeListener calls serve now and after each Refuse, until the network is closed.
func (n *Network) ServeListener(serve func(net.Listener)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serve = serve
	n.startServing(n.inner)
}

// startServing serves in the background. The caller holds n.mu.
func (n *Network) startServing(inner net.Listener) {
	serve := n.serve
	n.inner = inner
	n.served.Go(func() { serve(&listener{inner, n}) })
}

// RefuseConnections resets all connections and refuses new ones until Heal.
func (n *Network) RefuseConnections() {
	n.mu.Lock()
	inner := n.inner
	n.mu.Unlock()
	_ = inner.Close() // may be closed already
	n.ResetConnections()
}

// BlackHole delays all bytes in both directions until Heal. New connections are accepted but get no
// answer.
func (n *Network) BlackHole() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silence == nil {
		n.silence = make(chan struct{})
	}
}

// Forget silences the current connections forever, like a firewall that lost its state; new ones
// work.
func (n *Network) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.silentForever.Store(true)
	}
}

// Restore ends Refuse and Swallow.
func (n *Network) Restore() error {
	n.liftSilence()
	probe, err := net.Dial("tcp", n.Address) //nolint:noctx // loopback
	if err == nil {
		return probe.Close()
	}
	for range 100 {
		var inner net.Listener
		if inner, err = net.Listen("tcp", n.Address); err == nil { //nolint:noctx // it does not block
			n.mu.Lock()
			defer n.mu.Unlock()
			n.startServing(inner)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("taking %s again: %w", n.Address, err)
}

func (n *Network) liftSilence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silence != nil {
		close(n.silence)
		n.silence = nil
	}
}

// Close closes the network and all connections.
func (n *Network) Close() {
	n.liftSilence()
	n.RefuseConnections()
	n.served.Wait()
}

type listener struct {
	net.Listener
	net *Network
}

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
	net  *Network
	once sync.Once
	done chan struct{}

	silentForever atomic.Bool
}

// Read implements net.Conn. It blocks during a black hole.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.waitSilence()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.waitSilence()
	return c.Conn.Write(b)
}

func (c *conn) waitSilence() {
	c.net.mu.Lock()
	silent := c.net.silence
	c.net.mu.Unlock()
	if c.silentForever.Load() {
		<-c.done
	}
	if silent == nil {
		return
	}
	select {
	case <-silent:
	case <-c.done:
	}
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) resetConn() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // may be closed already
	}
	_ = c.Close() // as above
}

// ResetConnections resets all current connections.
func (n *Network) ResetConnections() {
	n.mu.Lock()
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.resetConn()
	}
}

// breakConn ends a connection.
func breakConn(c *tls.Conn, how ConnectionFault) {
	switch how {
	case ResetConn:
		if below, ok := c.NetConn().(*conn); ok {
			below.resetConn()
		}
	case GoAwayConn:
		// Streams up to the last id may have been processed, so the client must not assume that a
		// write was not.
		frame := []byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(frame[9:], math.MaxInt32)
		_, _ = c.Write(frame) // closed anyway
		_ = c.Close()         // as above
	case CloseConn:
		_ = c.Close() // may be closed already
	case Whole, DrainConn:
	}
}
