// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"sync"
)

// Protocol is TCP or UDP, as Go names them.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Destination is where packets arrive: at the machine Host, addressed to To. To is another address than
// Host's where Azure uses a floating IP.
type Destination struct {
	Protocol Protocol
	Host     netip.Addr
	To       netip.AddrPort
}

// DestinationOf is the usual case: the machine's own address.
func DestinationOf(protocol Protocol, at netip.AddrPort) Destination {
	return Destination{protocol, at.Addr(), at}
}

func (d Destination) String() string {
	if d.Host == d.To.Addr() {
		return fmt.Sprintf("%s %s", d.Protocol, d.To)
	}
	return fmt.Sprintf("%s %s at %s", d.Protocol, d.To, d.Host)
}

// Network maps destinations of the emulated network to sockets on loopback.
type Network struct {
	// maxConnections of one listener; others are reset.
	maxConnections int

	mu      sync.Mutex
	sockets map[Destination]netip.AddrPort
}

// NewNetwork returns an empty network.
func NewNetwork() *Network {
	return &Network{maxConnections: 1024, sockets: map[Destination]netip.AddrPort{}}
}

// LoopbackAddress returns the loopback address of an emulated one: for IPv4, its last three octets after 127.
// Addresses below 127.1.0.0 are in use by other programs, so a zero in the second octet is replaced by the first.
func LoopbackAddress(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if !ip.Is4() {
		h := fnv.New32a()
		_, _ = h.Write(ip.AsSlice())
		n := h.Sum32()
		return netip.AddrFrom4([4]byte{127, byte(1 + n>>16%254), byte(n >> 8), byte(n)})
	}
	octets := ip.As4()
	if octets[1] == 0 {
		octets[1] = max(octets[0], 1)
	}
	octets[0] = 127
	return netip.AddrFrom4(octets)
}

// Resolve returns the socket of a destination, and false if nothing listens there.
func (n *Network) Resolve(d Destination) (netip.AddrPort, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok := n.sockets[d]
	return at, ok
}

// candidates are the sockets to try: the loopback address with the port itself, with 8000 added if the port
// needs a privilege, or with any port; at last any port of 127.0.0.1, where systems have no other address.
func (d Destination) candidates() []string {
	at := LoopbackAddress(d.Host)
	var candidates []string
	if d.Host == d.To.Addr() {
		candidates = append(candidates, netip.AddrPortFrom(at, d.To.Port()).String())
		if d.To.Port() < 1024 {
			candidates = append(candidates, netip.AddrPortFrom(at, 8000+d.To.Port()).String())
		}
	}
	return append(candidates, netip.AddrPortFrom(at, 0).String(), "127.0.0.1:0")
}

var errInUse = errors.New("another part of the data plane listens there")

// bind binds a destination to the first socket that is free. release must be called once the socket is closed.
func (n *Network) bind(d Destination, listen func(address string) (net.Addr, error)) (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, bound := n.sockets[d]; bound {
		return nil, fmt.Errorf("%s: %w", d, errInUse)
	}
	var errs []error
	for _, address := range d.candidates() {
		at, err := listen(address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		socket, err := netip.ParseAddrPort(at.String())
		if err != nil {
			return nil, err
		}
		n.sockets[d] = socket
		return sync.OnceFunc(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.sockets, d)
		}), nil
	}
	return nil, fmt.Errorf("no socket for %s: %w", d, errors.Join(errs...))
}

var errRefused = errors.New("nothing listens there")

// dial connects to a destination.
func (n *Network) dial(ctx context.Context, d Destination) (net.Conn, error) {
	at, ok := n.Resolve(d)
	if !ok {
		return nil, fmt.Errorf("%s: %w", d, errRefused)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, string(d.Protocol), at.String())
}
