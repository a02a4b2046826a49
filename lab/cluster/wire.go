// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"weir.dev/weir/lab/armemu"
)

// How long a request travels, one way.
const (
	toAPI   = time.Millisecond
	toAzure = 20 * time.Millisecond
)

// What a dead process gets.
var (
	errNoWay = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errLost  = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// apiWire is the way of a process to the API server.
type apiWire struct {
	process *process
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *apiWire) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := w.process.stage.elapsed()
	resp, err := w.process.send(req, toAPI, w.next.RoundTrip)
	if err == nil {
		w.process.renews(req, resp, sent)
	}
	return resp, err
}

// azureWire is the way of a process to Azure.
type azureWire struct {
	process *process
	next    *armemu.Transport
}

// Do implements azure.Transport.
func (w *azureWire) Do(req *http.Request) (*http.Response, error) {
	dies, after := w.process.stage.fatal.counts()
	if dies && !after {
		w.process.dies()
	}
	resp, err := w.process.send(req, toAzure, w.next.Do)
	if dies && after {
		w.process.dies()
		if err == nil {
			_ = resp.Body.Close() // nobody reads it
		}
		return nil, errLost
	}
	return resp, err
}

// fatal is a request to Azure at which its process dies.
type fatal struct {
	mu    sync.Mutex
	in    int // requests from now; zero is never
	after bool
}

// DiesAt has the process die that sends the request to Azure of this number, from now: before it arrives, or once it has
// been answered.
func (s *Stage) DiesAt(request int, after bool) {
	s.fatal.mu.Lock()
	defer s.fatal.mu.Unlock()
	s.fatal.in, s.fatal.after = request, after
}

// counts counts a request, and reports whether its process dies of it.
func (f *fatal) counts() (dies, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in > 0 {
		f.in--
		dies = f.in == 0
	}
	return dies, f.after
}

// send has a request travel, and its answer. What a process has sent when it dies arrives.
func (p *process) send(req *http.Request, distance time.Duration, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if p.dead.Load() {
		return nil, p.refuse(req)
	}
	p.may(req)
	travel(req, distance)
	if err := req.Context().Err(); err != nil { // it has left, so it arrives; nobody waits for a watch
		if req.URL.Query().Has("watch") {
			return nil, err
		}
		req = req.WithContext(context.WithoutCancel(req.Context()))
		if resp, sent := next(req); sent == nil {
			_ = resp.Body.Close() // nobody reads it
		}
		return nil, err
	}
	resp, err := next(req)
	if err != nil {
		return nil, err
	}
	p.stage.watch()
	travel(req, distance)
	lost := req.Context().Err()
	if lost == nil && p.dead.Load() {
		lost = errLost
	}
	if lost != nil {
		_ = resp.Body.Close() // nobody reads it
		return nil, lost
	}
	resp.Body = &body{resp.Body, p}
	return resp, nil
}

func (p *process) refuse(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // as a transport has to; nothing was read
	}
	return errNoWay
}

// travel lets time pass, or less if nobody waits any more.
func travel(req *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
}

// body is an answer that ends with who reads it.
type body struct {
	io.ReadCloser
	process *process
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.process.dead.Load() {
		return 0, errLost
	}
	n, err := b.ReadCloser.Read(p)
	if b.process.dead.Load() {
		return 0, errLost
	}
	return n, err
}
