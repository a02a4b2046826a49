// SPDX-License-Identifier: Apache-2.0

// Package badlink puts a bad network in front of a server: slow, with connection resets, or
// unreachable. It serves the demo and tests of the built binaries.
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

// resetWithin limits the bytes before a reset; a TLS handshake is half of it.
const resetWithin = 8 << 10

// Network is the state of the network.
type Network struct {
	// Away resets all existing and new connections.
	Away bool `json:"away"`
	// BytesPerSecond is the bandwidth of all connections together, in each direction.
	BytesPerSecond int `json:"bytesPerSecond"`
	// ResetPercent is the percentage of connections reset within their first 8 KiB.
	ResetPercent int `json:"resetPercent"`
}

// Bounds of Network.BytesPerSecond.
const (
	Slowest = 100
	Fastest = 100_000_000
)

// Validate checks the bounds.
func (n Network) Validate() error {
	switch {
	case n.BytesPerSecond < Slowest || n.BytesPerSecond > Fastest:
		return fmt.Errorf("bytesPerSecond %d: give %d to %d", n.BytesPerSecond, Slowest, Fastest)
	case n.ResetPercent < 0 || n.ResetPercent > 100:
		return fmt.Errorf("resetPercent %d: give 0 to 100", n.ResetPercent)
	}
	return nil
}

func (n Network) String() string {
	if n.Away {
		return "away"
	}
	return fmt.Sprintf("%d bytes/s each way, resets %d%% of connections", n.BytesPerSecond, n.ResetPercent)
}

// Figures are the network's counters.
type Figures struct {
	Connections int   `json:"connections"` // attempted
	Refused     int   `json:"refused"`     // while away
	Reset       int   `json:"reset"`       // established ones
	Bytes       int64 `json:"bytes"`       // both directions
}

// Link is a TCP proxy with a bad network.
type Link struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)
	end      context.Context //nolint:containedctx // of all dials
	cancel   context.CancelFunc
	all      sync.WaitGroup
	up, down lane

	mu      sync.Mutex
	network Network
	random  *rand.Rand
	figures Figures
	live    map[*connection]bool
}

// connection is an accepted connection.
type connection struct {
	near, far net.Conn // far is nil while dialing
	left      int      // bytes before the reset; negative for none
}

// address returns a non-loopback address of this machine: Weir does not provision clusters at
// loopback addresses.
func address() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	found := ""
	for _, a := range all {
		is, err := netip.ParsePrefix(a.String())
		if err != nil || !is.Addr().IsGlobalUnicast() {
			continue
		}
		if found = is.Addr().String(); is.Addr().Is4() {
			return found, nil
		}
	}
	if found == "" {
		return "", errors.New("this machine has only addresses of loopback, where Weir provisions no cluster: connect it to a network, " +
			"or give it an address: ip link add weir0 type dummy && ip address add 198.51.100.1/32 dev weir0 && ip link set weir0 up")
	}
	return found, nil
}

// Listener listens on a free port of a non-loopback address.
func Listener(ctx context.Context) (net.Listener, error) {
	at, err := address()
	if err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at, "0"))
}

// Listen puts a network between a server and a free port of a non-loopback address. The seed
// determines which connections are reset.
func Listen(ctx context.Context, server string, n Network, seed uint64) (*Link, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	listener, err := Listener(ctx)
	if err != nil {
		return nil, err
	}
	return serve(listener, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", server) }, n, seed), nil
}

func serve(listener net.Listener, dial func(context.Context) (net.Conn, error), n Network, seed uint64) *Link {
	l := &Link{
		listener: listener, dial: dial, network: n, live: map[*connection]bool{},
		random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a network, not a secret
	}
	l.end, l.cancel = context.WithCancel(context.Background())
	l.all.Go(l.accept)
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

// Figures returns the counters.
func (l *Link) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Set changes the network, for existing connections too.
func (l *Link) Set(n Network) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.network = n
	if n.Away {
		l.breakAll()
	}
}

// Close closes all connections and waits for them.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.cancel()
	l.mu.Lock()
	l.network.Away = true // for a connection accepted but not registered yet
	l.breakAll()
	l.mu.Unlock()
	l.all.Wait()
	return err
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of a single connection, or too many open files
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if c := l.begins(near); c != nil {
			l.all.Go(func() { l.carry(c) })
		}
	}
}

// begins registers a connection; nil if it was reset.
func (l *Link) begins(near net.Conn) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.Connections++
	if l.network.Away {
		l.figures.Refused++
		reset(near)
		return nil
	}
	// Draw both always, so that connections do not affect each other's randomness.
	breaks, after := l.random.IntN(100) < l.network.ResetPercent, 1+l.random.IntN(resetWithin)
	c := &connection{near: near, left: -1}
	if breaks {
		c.left = after
	}
	l.live[c] = true
	return c
}

// carry proxies a connection to its end.
func (l *Link) carry(c *connection) {
	far, err := l.dial(l.end)
	if err != nil {
		l.ends(c)
		return
	}
	if !l.joins(c, far) {
		reset(far)
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.way(c, far, c.near, &l.up) })
	ways.Go(func() { l.way(c, c.near, far, &l.down) })
	ways.Wait()
}

// joins sets the far end and reports whether the connection is still open.
func (l *Link) joins(c *connection, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.far = far
	return l.live[c]
}

// way copies one direction.
func (l *Link) way(c *connection, to io.Writer, from io.Reader, over *lane) {
	defer l.ends(c)
	var buf [32 << 10]byte
	for {
		speed := l.Network().BytesPerSecond
		n, err := from.Read(buf[:min(len(buf), halfASecond(speed))])
		over.pass(n, speed)
		if !l.passes(c, n) {
			return
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// passes counts transferred bytes and reports whether the connection survives.
func (l *Link) passes(c *connection, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.live[c] {
		return false
	}
	if c.left >= 0 {
		if c.left -= n; c.left <= 0 {
			l.figures.Reset++
			l.breaks(c)
			return false
		}
	}
	l.figures.Bytes += int64(n)
	return true
}

// ends closes both ends of a connection.
func (l *Link) ends(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, c)
	_ = c.near.Close() // may be reset already
	if c.far != nil {
		_ = c.far.Close()
	}
}

func (l *Link) breakAll() {
	for c := range l.live {
		l.figures.Reset++
		l.breaks(c)
	}
}

// breaks resets a connection.
func (l *Link) breaks(c *connection) {
	delete(l.live, c)
	reset(c.near)
	if c.far != nil {
		reset(c.far)
	}
}

// reset closes with RST, so the peer sees no orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // closed next
	}
	_ = c.Close()
}
