// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxDatagramFlows is the number of UDP flows of one listener; datagrams of others are dropped.
	maxDatagramFlows = 1024
	// maxDatagram is in bytes.
	maxDatagram = 2048
)

// udpServer receives datagrams at a destination. handle is called serially; reply sends to the datagram's sender.
type udpServer struct {
	conn    *net.UDPConn
	release func()
	running sync.WaitGroup
}

func (n *Network) listenUDP(at Destination, handle func(from netip.AddrPort, datagram []byte, reply func([]byte))) (*udpServer, error) {
	s := &udpServer{}
	var err error
	s.release, err = n.bind(at, func(address string) (net.Addr, error) {
		var config net.ListenConfig
		conn, err := config.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			return nil, err
		}
		s.conn = conn.(*net.UDPConn)
		return conn.LocalAddr(), nil
	})
	if err != nil {
		return nil, err
	}
	s.running.Go(func() {
		buffer := make([]byte, maxDatagram)
		for {
			size, from, err := s.conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return // closed
			}
			handle(from, buffer[:size], func(answer []byte) { _, _ = s.conn.WriteToUDPAddrPort(answer, from) })
		}
	})
	return s, nil
}

func (s *udpServer) close() {
	_ = s.conn.Close()
	s.release()
	s.running.Wait()
}

// udpRelay forwards datagrams. A flow is one sender; it ends after idle without a datagram.
type udpRelay struct {
	*udpServer
	network *Network
	idle    time.Duration
	// choose returns the target of a flow; before is its current one, or zero.
	choose func(from netip.AddrPort, before Destination) (Destination, bool)

	ctx     context.Context //nolint:containedctx // ends with the relay
	cancel  context.CancelFunc
	flows   sync.WaitGroup
	mu      sync.Mutex
	senders map[netip.AddrPort]*udpFlow
}

type udpFlow struct {
	to   Destination
	conn net.Conn
}

func (n *Network) relayUDP(at Destination, idle time.Duration, choose func(netip.AddrPort, Destination) (Destination, bool)) (*udpRelay, error) {
	r := &udpRelay{network: n, idle: idle, choose: choose, senders: map[netip.AddrPort]*udpFlow{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	var err error
	if r.udpServer, err = n.listenUDP(at, r.forward); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

func (r *udpRelay) forward(from netip.AddrPort, datagram []byte, reply func([]byte)) {
	r.mu.Lock()
	flow := r.senders[from]
	r.mu.Unlock()
	var before Destination
	if flow != nil {
		before = flow.to
	}
	to, ok := r.choose(from, before)
	if flow != nil && (!ok || to != flow.to) {
		r.end(from, flow)
		flow = nil
	}
	if !ok {
		return
	}
	if flow == nil {
		if flow = r.begin(from, to, reply); flow == nil {
			return
		}
	}
	_ = flow.conn.SetReadDeadline(time.Now().Add(r.idle))
	_, _ = flow.conn.Write(datagram)
}

func (r *udpRelay) begin(from netip.AddrPort, to Destination, reply func([]byte)) *udpFlow {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.senders) >= maxDatagramFlows || r.ctx.Err() != nil {
		return nil
	}
	conn, err := r.network.dial(r.ctx, to)
	if err != nil {
		return nil
	}
	flow := &udpFlow{to, conn}
	r.senders[from] = flow
	r.flows.Go(func() {
		defer r.end(from, flow)
		buffer := make([]byte, maxDatagram)
		for {
			size, err := conn.Read(buffer)
			if err != nil {
				return // idle, closed, or refused by the target
			}
			reply(buffer[:size])
		}
	})
	return flow
}

func (r *udpRelay) end(from netip.AddrPort, flow *udpFlow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = flow.conn.Close()
	if r.senders[from] == flow {
		delete(r.senders, from)
	}
}

func (r *udpRelay) close() {
	r.cancel()
	r.udpServer.close()
	r.mu.Lock()
	for _, flow := range r.senders {
		_ = flow.conn.Close()
	}
	r.mu.Unlock()
	r.flows.Wait()
}
