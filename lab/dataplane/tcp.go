// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// tcpServer accepts connections at a destination and serves each in a goroutine.
type tcpServer struct {
	listener net.Listener
	limit    int // of open connections
	serve    func(ctx context.Context, conn net.Conn)
	release  func()
	ctx      context.Context //nolint:containedctx // ends with the server
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (n *Network) listenTCP(at Destination, serve func(ctx context.Context, conn net.Conn)) (*tcpServer, error) {
	s := &tcpServer{serve: serve, limit: n.maxConnections, open: map[net.Conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.release, err = n.bind(at, func(address string) (net.Addr, error) {
		var config net.ListenConfig
		listener, err := config.Listen(s.ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		s.listener = listener
		return listener.Addr(), nil
	})
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.running.Go(s.accept)
	return s, nil
}

func (s *tcpServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, or a client that left
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if !s.track(conn) {
			reset(conn)
			continue
		}
		s.running.Go(func() {
			defer s.untrack(conn)
			s.serve(s.ctx, conn)
		})
	}
}

func (s *tcpServer) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= s.limit {
		return false
	}
	s.open[conn] = true
	return true
}

func (s *tcpServer) untrack(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// stopAccepting closes the listener; open connections remain.
func (s *tcpServer) stopAccepting() {
	_ = s.listener.Close()
	s.release()
}

func (s *tcpServer) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0
}

// close resets all connections and returns when their goroutines have ended.
func (s *tcpServer) close() {
	s.stopAccepting()
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		reset(conn)
	}
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// reset closes a connection so that the peer sees a reset, not an orderly end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// relay copies between two connections until both directions ended, or ctx is done. A broken connection resets the
// other one.
func relay(ctx context.Context, a, b net.Conn) {
	defer b.Close()
	stop := context.AfterFunc(ctx, func() { reset(a); reset(b) })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			to, from := way[1], way[0]
			if _, err := io.Copy(to, from); err != nil {
				reset(to)
				reset(from)
				return
			}
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		})
	}
	both.Wait()
}

// interruptReads ends the connections that wait for their peer; those that answer it end afterwards.
func (s *tcpServer) interruptReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.SetReadDeadline(time.Now())
	}
}
