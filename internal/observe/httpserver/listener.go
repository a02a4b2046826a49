// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// connectionRate (per second) and connectionBurst limit the new connections of an address.
	connectionRate, connectionBurst = 50, 100
	maxRates                        = 1024
)

type limitedListener struct {
	net.Listener

	mu    sync.Mutex
	table *connectionTable
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limited := &limitedConn{Conn: c, listener: l}
		l.mu.Lock()
		evicted, ok := l.table.addConn(limited, addressOf(c), time.Now())
		l.mu.Unlock()
		if evicted != nil {
			_ = evicted.Conn.Close() // its request fails
		}
		if ok {
			return limited, nil
		}
		_ = c.Close()
	}
}

// addressOf returns the client's address. IPv6 addresses are not grouped by prefix: a node's prefix includes
// the kubelet.
func addressOf(c net.Conn) netip.Addr {
	at, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return at.Addr().Unmap()
}

type limitedConn struct {
	net.Conn

	listener *limitedListener
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.table.removeConn(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// connectionTable holds the open connections, oldest first, and a rate limiter per address.
type connectionTable struct {
	max   int
	open  []entry
	rates map[netip.Addr]*rate.Limiter
}

type entry struct {
	conn    *limitedConn
	address netip.Addr
}

func newTable(maxOpen int) *connectionTable {
	return &connectionTable{max: maxOpen, rates: map[netip.Addr]*rate.Limiter{}}
}

// addConn adds a connection unless its address exceeds its rate. If the table is full, it evicts the oldest
// connection of the address with the most, so no client can block others by holding connections.
func (t *connectionTable) addConn(c *limitedConn, from netip.Addr, now time.Time) (evicted *limitedConn, ok bool) {
	if !t.rateOf(from, now).AllowN(now, 1) {
		return nil, false
	}
	t.open = append(t.open, entry{c, from})
	if len(t.open) <= t.max {
		return nil, true
	}
	counts := map[netip.Addr]int{}
	for _, e := range t.open {
		counts[e.address]++
	}
	victim := 0
	for i, e := range t.open {
		if counts[e.address] > counts[t.open[victim].address] {
			victim = i
		}
	}
	evicted = t.open[victim].conn
	t.open = slices.Delete(t.open, victim, victim+1)
	return evicted, true
}

func (t *connectionTable) removeConn(c *limitedConn) {
	t.open = slices.DeleteFunc(t.open, func(e entry) bool { return e.conn == c })
}

func (t *connectionTable) rateOf(from netip.Addr, now time.Time) *rate.Limiter {
	l := t.rates[from]
	if l == nil {
		if len(t.rates) >= maxRates {
			maps.DeleteFunc(t.rates, func(_ netip.Addr, l *rate.Limiter) bool { return l.TokensAt(now) >= connectionBurst })
		}
		if len(t.rates) >= maxRates {
			clear(t.rates) // the number of connections is still limited
		}
		l = rate.NewLimiter(connectionRate, connectionBurst)
		t.rates[from] = l
	}
	return l
}
