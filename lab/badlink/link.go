// SPDX-License-Identifier: Apache-2.0

// Package badlink puts a bad network in front of a server: slow, unreliable, or unreachable.
package badlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxBytesBeforeReset is in bytes; a TLS handshake is half of it.
const maxBytesBeforeReset = 8 << 10

// Network is the state of the network.
type Network struct {
	// Down resets all existing and new connections.
	Down bool `json:"away"`
	// BytesPerSecond is per direction, for all connections together.
	BytesPerSecond int `json:"bytesPerSecond"`
	// ResetPercent of connections are reset within their first 8 KiB.
	ResetPercent int `json:"resetPercent"`
}

// Bounds of Network.BytesPerSecond.
const (
	MinBandwidth = 100
	MaxBandwidth = 100_000_000
)

// Validate checks the bounds.
func (n Network) Validate() error {
	switch {
	case n.BytesPerSecond < MinBandwidth || n.BytesPerSecond > MaxBandwidth:
		return fmt.Errorf("bytesPerSecond %d: give %d to %d", n.BytesPerSecond, MinBandwidth, MaxBandwidth)
	case n.ResetPercent < 0 || n.ResetPercent > 100:
		return fmt.Errorf("resetPercent %d: give 0 to 100", n.ResetPercent)
	}
	return nil
}

func (n Network) String() string {
	if n.Down {
		return "away"
	}
	return fmt.Sprintf("%d bytes/s each way, resets %d%% of connections", n.BytesPerSecond, n.ResetPercent)
}

// Counters are the network's counters.
type Counters struct {
	Connections int   `json:"connections"` // attempted
	Rejected    int   `json:"refused"`     // while away
	Reset       int   `json:"reset"`       // established ones
	Bytes       int64 `json:"bytes"`       // both directions
}

// Link is a TCP proxy with a bad network.
type Link struct {
	listener    net.Listener
	dial        func(context.Context) (net.Conn, error)
	dialContext context.Context //nolint:containedctx // of all dials
	cancel      context.CancelFunc
	running     sync.WaitGroup
	up, down    bandwidth

	mu      sync.Mutex
	network Network
	random  *rand.Rand
	figures Counters
	open    map[*connection]bool
}

type connection struct {
	near, far net.Conn // far is nil while dialing
	bytesLeft int      // bytes before the reset; negative for none
}

// nonLoopbackAddress skips loopback addresses, where Weir does not provision clusters.
func nonLoopbackAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	found := ""
	for _, a := range addrs {
		got, err := netip.ParsePrefix(a.String())
		if err != nil || !got.Addr().IsGlobalUnicast() {
			continue
		}
		if found = got.Addr().String(); got.Addr().Is4() {
			return found, nil
		}
	}
	if found == "" {
		return "", errors.New("this machine has only addresses of loopback, where Weir provisions no cluster: connect it to a network, " +
			"or give it an address: ip link add weir0 type dummy && ip address add 198.51.100.1/32 dev weir0 && ip link set weir0 up")
	}
	return found, nil
}

// NewListener listens on a free port of a non-loopback address.
func NewListener(ctx context.Context) (net.Listener, error) {
	at, err := nonLoopbackAddress()
	if err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at, "0"))
}

// StartLink starts a network between a server and a free port. The seed determines which connections
// are reset.
func StartLink(ctx context.Context, server string, n Network, seed uint64) (*Link, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	listener, err := NewListener(ctx)
	if err != nil {
		return nil, err
	}
	return newLink(listener, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", server) }, n, seed), nil
}

func newLink(listener net.Listener, dial func(context.Context) (net.Conn, error), n Network, seed uint64) *Link {
	l := &Link{
		listener: listener, dial: dial, network: n, open: map[*connection]bool{},
		random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a network, not a secret
	}
	l.dialContext, l.cancel = context.WithCancel(context.Background())
	l.running.Go(l.acceptConnections)
	return l
}

// Addr returns the listening address.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Network returns the current settings.
func (l *Link) Network() Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.network
}

// Counters returns the counters.
func (l *Link) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// SetNetwork also affects existing connections.
func (l *Link) SetNetwork(n Network) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.network = n
	if n.Down {
		l.resetAll()
	}
}

// Close closes all connections and waits for them.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.cancel()
	l.mu.Lock()
	l.network.Down = true // for a connection not registered yet
	l.resetAll()
	l.mu.Unlock()
	l.running.Wait()
	return err
}

func (l *Link) acceptConnections() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of a single connection, or too many open files
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if c := l.addConnection(near); c != nil {
			l.running.Go(func() { l.proxyConnection(c) })
		}
	}
}

// addConnection returns nil if the connection was reset.
func (l *Link) addConnection(near net.Conn) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.Connections++
	if l.network.Down {
		l.figures.Rejected++
		resetTCP(near)
		return nil
	}
	// Draw both always: connections must not affect each other's randomness.
	breaks, after := l.random.IntN(100) < l.network.ResetPercent, 1+l.random.IntN(maxBytesBeforeReset)
	c := &connection{near: near, bytesLeft: -1}
	if breaks {
		c.bytesLeft = after
	}
	l.open[c] = true
	return c
}

func (l *Link) proxyConnection(c *connection) {
	far, err := l.dial(l.dialContext)
	if err != nil {
		l.closeConnection(c)
		return
	}
	if !l.setFarEnd(c, far) {
		resetTCP(far)
		return
	}
	var azureOpts sync.WaitGroup
	azureOpts.Go(func() { l.copyDirection(c, far, c.near, &l.up) })
	azureOpts.Go(func() { l.copyDirection(c, c.near, far, &l.down) })
	azureOpts.Wait()
}

func (l *Link) setFarEnd(c *connection, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.far = far
	return l.open[c]
}

func (l *Link) copyDirection(c *connection, to io.Writer, from io.Reader, over *bandwidth) {
	defer l.closeConnection(c)
	var buf [32 << 10]byte
	for {
		speed := l.Network().BytesPerSecond
		n, err := from.Read(buf[:min(len(buf), halfSecondBytes(speed))])
		over.waitFor(n, speed)
		if !l.countBytes(c, n) {
			return
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// countBytes reports whether the connection survives.
func (l *Link) countBytes(c *connection, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open[c] {
		return false
	}
	if c.bytesLeft >= 0 {
		if c.bytesLeft -= n; c.bytesLeft <= 0 {
			l.figures.Reset++
			l.resetConnection(c)
			return false
		}
	}
	l.figures.Bytes += int64(n)
	return true
}

func (l *Link) closeConnection(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	_ = c.near.Close() // may be reset already
	if c.far != nil {
		_ = c.far.Close()
	}
}

func (l *Link) resetAll() {
	for c := range l.open {
		l.figures.Reset++
		l.resetConnection(c)
	}
}

func (l *Link) resetConnection(c *connection) {
	delete(l.open, c)
	resetTCP(c.near)
	if c.far != nil {
		resetTCP(c.far)
	}
}

// resetTCP sends RST, so the peer sees no orderly end.
func resetTCP(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // closed next
	}
	_ = c.Close()
}
