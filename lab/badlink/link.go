// SPDX-License-Identifier: Apache-2.0

// Package badlink is a bad network in front of a server: it is slow, breaks connections off, and is
// away. It is for the demo, and for tests of what is built.
//
//	link.go   connections, and what becomes of them
//	lane.go   how long bytes are under way
//	admin.go  the network is shown and changed over HTTP
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

// resetWithin is how many bytes a connection that is reset carries at most; a TLS handshake is half of it.
const resetWithin = 8 << 10

// Network is how the network is.
type Network struct {
	// Away has every connection be reset, those that are there and those that are tried.
	Away bool `json:"away"`
	// BytesPerSecond is what all connections together carry, in each direction.
	BytesPerSecond int `json:"bytesPerSecond"`
	// ResetPercent is how many of a hundred connections are reset within their first 8 KiB.
	ResetPercent int `json:"resetPercent"`
}

// Bounds of Network.BytesPerSecond.
const (
	Slowest = 100
	Fastest = 100_000_000
)

// Validate says what no network can be.
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

// Figures count what the network has done.
type Figures struct {
	Connections int   `json:"connections"` // that were tried
	Refused     int   `json:"refused"`     // while it was away
	Reset       int   `json:"reset"`       // that had begun
	Bytes       int64 `json:"bytes"`       // both ways
}

// Link is a TCP proxy, between whom the bad network is.
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

// connection is one that was made.
type connection struct {
	near, far net.Conn // far is nil while it is dialled
	left      int      // bytes until it is reset
}

// address returns an address of this machine that is not on loopback: Weir provisions no cluster at an address of loopback.
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

// Listener listens on a free port of this machine, at an address that is not on loopback.
func Listener(ctx context.Context) (net.Listener, error) {
	at, err := address()
	if err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at, "0"))
}

// Listen has a network be between a free port of this machine, at an address that is not on loopback, and a server. The same seed
// has the same connections be reset.
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

// Addr is where it listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Network is how the network is now.
func (l *Link) Network() Network {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.network
}

// Figures are those since it began.
func (l *Link) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Set changes the network, also for connections that are there.
func (l *Link) Set(n Network) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.network = n
	if n.Away {
		l.breakAll()
	}
}

// Close ends all connections, and waits until nothing is left of them.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.cancel()
	l.mu.Lock()
	l.network.Away = true // for one that was accepted and is not known yet
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
		if err != nil { // of one connection, or there are too many
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if c := l.begins(near); c != nil {
			l.all.Go(func() { l.carry(c) })
		}
	}
}

// begins decides what becomes of a connection; nil if it is none.
func (l *Link) begins(near net.Conn) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.Connections++
	if l.network.Away {
		l.figures.Refused++
		reset(near)
		return nil
	}
	// Both are drawn in any case: what becomes of one connection does not depend on another's.
	breaks, after := l.random.IntN(100) < l.network.ResetPercent, 1+l.random.IntN(resetWithin)
	c := &connection{near: near, left: -1}
	if breaks {
		c.left = after
	}
	l.live[c] = true
	return c
}

// carry carries a connection to its end.
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

// joins reports whether there still is a connection that now has two ends.
func (l *Link) joins(c *connection, far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.far = far
	return l.live[c]
}

// way carries what comes from one end to the other.
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

// passes reports whether a connection bears so many bytes more.
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

// ends closes a connection of which one end is closed.
func (l *Link) ends(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, c)
	_ = c.near.Close() // it may have been reset
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

// reset closes as a network does that is gone: the other side hears of no end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed next
	}
	_ = c.Close()
}
