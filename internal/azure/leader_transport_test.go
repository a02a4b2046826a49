// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leader"
)

// wireWorld is a real server and a way to connect the default transport.
type wireWorld struct {
	name  string
	tls   bool
	proto int
}

var wireWorlds = []wireWorld{{"HTTP/1.1", false, 1}, {"HTTP/1.1 over TLS", true, 1}, {"HTTP/2", true, 2}}

// server is a minimal fake of Azure.
type server struct {
	*httptest.Server

	mu     sync.Mutex
	writes []string // received writes
	protos map[int]int
}

func newServer(t *testing.T, w wireWorld) *server {
	t.Helper()
	s := &server{protos: map[int]int{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.protos[req.ProtoMajor]++
		if req.Method != http.MethodGet {
			s.writes = append(s.writes, req.Method)
		}
		if req.Method == http.MethodDelete {
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(rw, strings.ReplaceAll(shown.body, pathPlaceholder, req.URL.Path))
	}))
	s.EnableHTTP2 = w.proto == 2
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are cut
	if w.tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// takeWrites returns the writes received since the last call.
func (s *server) takeWrites() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writes
	s.writes = nil
	return w
}

// client uses the production transport.
func (s *server) client(t *testing.T, leads *leader.Fence) *Client {
	t.Helper()
	own := defaultTransport(nil, leads).(*http.Client)
	for _, tr := range []*http.Transport{own.Transport.(fencedTransport).ReadTransport, own.Transport.(fencedTransport).WriteTransport} {
		if s.TLS != nil {
			tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			tr.TLSClientConfig.NextProtos = nil
		}
		if tr.ForceAttemptHTTP2 = s.EnableHTTP2; !s.EnableHTTP2 {
			tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		t.Cleanup(tr.CloseIdleConnections)
	}
	return newClient(t, nil, func(o *Options) {
		o.Endpoint.ResourceManager, o.Transport, o.Fence = s.URL, own, leads
	})
}

// moments are the last ones at which a process can be suspended before the request reaches the
// kernel.
var moments = map[string]func(freeze func()) *httptrace.ClientTrace{
	"once it has its connection": func(freeze func()) *httptrace.ClientTrace {
		return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { freeze() }}
	},
	"with its headers in the buffer": func(freeze func()) *httptrace.ClientTrace {
		return &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { freeze() }}
	},
}

// A process is suspended at the worst moment of a write and loses leadership: no byte arrives, over
// any protocol, on a new or a reused connection, and the transport does not retry.
func TestFrozenWriteSendsNothing(t *testing.T) {
	writes := map[string]func(context.Context, *Client, lb.Pool) error{
		http.MethodPut: func(ctx context.Context, c *Client, p lb.Pool) error { _, err := c.PutPool(ctx, p); return err },
		http.MethodDelete: func(ctx context.Context, c *Client, _ lb.Pool) error {
			return c.DeleteLoadBalancer(ctx, lb.LoadBalancer{ID: webPool.LoadBalancer, Origin: struct{}{}, Etag: "e"})
		},
	}
	for _, w := range wireWorlds {
		for moment, trace := range moments {
			for method, write := range writes {
				for _, used := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %s %s used=%t", w.name, method, moment, used), func(t *testing.T) {
						s := newServer(t, w)
						var current atomic.Int64
						fence := leader.NewFence(10*time.Second, func() time.Duration { return time.Duration(current.Load()) })
						fence.RecordRenew(leader.Epoch{Lease: "weir-system/weir-controller"}, 0)
						c := s.client(t, fence)
						pool, err := c.GetPool(t.Context(), webPool)
						if err != nil {
							t.Fatal(err)
						}
						if used {
							if err := write(t.Context(), c, pool); err != nil {
								t.Fatal(err)
							}
						}
						s.takeWrites()
						ctx := httptrace.WithClientTrace(t.Context(), trace(func() { current.Store(int64(20 * time.Second)) }))
						checkShutdown(t, write(ctx, c, pool), true) // some bytes of a connection may have been sent
						if got := s.takeWrites(); len(got) > 0 {
							t.Errorf("%v arrived", got)
						}
						if _, err := c.GetPool(t.Context(), webPool); err != nil {
							t.Errorf("a read: %v", err)
						}
						if s.protos[w.proto] == 0 || len(s.protos) != 1 {
							t.Errorf("requests by version of HTTP: %v", s.protos)
						}
					})
				}
			}
		}
	}
}
