// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// PodPort is a port that a pod listens on.
type PodPort struct {
	Protocol Protocol
	Port     uint16
}

// PodOptions describe a pod.
type PodOptions struct {
	Name, Node string
	IP         netip.Addr
	Ports      []PodPort
	// Startup is the time until it listens.
	Startup time.Duration
	Server
}

// Server is what a pod runs. A nil function is the default: HTTP answers, echoed datagrams.
type Server struct {
	// TCP serves a connection to a port; the caller closes it.
	TCP func(ctx context.Context, port uint16, conn net.Conn)
	// UDP answers a datagram; datagrams to a port arrive one after the other.
	UDP func(port uint16, datagram []byte, reply func([]byte))
}

// Pod answers HTTP requests on its TCP ports and echoes datagrams, with its name and node, or runs a Server.
type Pod struct {
	opts    PodOptions
	network *Network
	ctx     context.Context //nolint:containedctx // ends with the pod
	cancel  context.CancelFunc
	running sync.WaitGroup
	started chan struct{}

	mu      sync.Mutex
	err     error
	tcp     []*tcpServer
	udp     []*udpServer
	leaving bool
}

// StartPod starts a pod. It listens after its startup time.
func StartPod(network *Network, opts PodOptions) *Pod {
	p := &Pod{opts: opts, network: network, started: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(func() {
		if sleep(p.ctx, opts.Startup) {
			p.setErr(p.listen(opts.Ports))
			close(p.started)
		}
	})
	return p
}

// WaitReady waits until the pod listens.
func (p *Pod) WaitReady(ctx context.Context) error {
	select {
	case <-p.started:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	case <-p.ctx.Done():
		return errors.New("the pod was closed before it started")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pod) setErr(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (p *Pod) listen(ports []PodPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range ports {
		if p.ctx.Err() != nil || p.leaving {
			return nil
		}
		at := DestinationOf(port.Protocol, netip.AddrPortFrom(p.opts.IP, port.Port))
		if port.Protocol == UDP {
			s, err := p.network.listenUDP(at, func(_ netip.AddrPort, datagram []byte, reply func([]byte)) {
				if p.opts.UDP != nil {
					p.opts.UDP(port.Port, datagram, reply)
					return
				}
				reply(append([]byte(p.greeting()), datagram...))
			})
			if err != nil {
				return err
			}
			p.udp = append(p.udp, s)
			continue
		}
		serve := p.serveHTTP
		if p.opts.TCP != nil {
			serve = func(ctx context.Context, conn net.Conn) { p.opts.TCP(ctx, port.Port, conn) }
		}
		s, err := p.network.listenTCP(at, serve)
		if err != nil {
			return err
		}
		p.tcp = append(p.tcp, s)
	}
	return nil
}

// The headers of a pod's answer.
const (
	podHeader  = "Weir-Lab-Pod"
	nodeHeader = "Weir-Lab-Node"
)

func (p *Pod) greeting() string { return fmt.Sprintf("pod %s on %s\n", p.opts.Name, p.opts.Node) }

func (p *Pod) isLeaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving
}

func (p *Pod) serveHTTP(_ context.Context, conn net.Conn) {
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		if err != nil {
			return
		}
		text := append([]byte(p.greeting()), body...)
		answer := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: request.Close || p.isLeaving(),
			Header:        http.Header{podHeader: {p.opts.Name}, nodeHeader: {p.opts.Node}, "Content-Type": {"text/plain"}},
			ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)),
		}
		if answer.Write(conn) != nil || answer.Close {
			return
		}
	}
}

// Terminate serves for preStop, then stops as a server does on SIGTERM: it accepts no connection and ends the open
// ones between two requests. It returns at once.
func (p *Pod) Terminate(preStop time.Duration) {
	p.running.Go(func() {
		if sleep(p.ctx, preStop) {
			p.stopServing()
		}
	})
}

func (p *Pod) stopServing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
	for _, s := range p.tcp {
		s.stopAccepting()
		s.interruptReads()
	}
	for _, s := range p.udp {
		s.close()
	}
	p.udp = nil
}

// Close stops the pod as kill -9 does.
func (p *Pod) Close() {
	p.cancel()
	p.running.Wait()
	p.mu.Lock()
	tcp, udp := p.tcp, p.udp
	p.tcp, p.udp = nil, nil
	p.mu.Unlock()
	for _, s := range tcp {
		s.close()
	}
	for _, s := range udp {
		s.close()
	}
}
