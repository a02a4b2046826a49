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

// One-way network latency.
const (
	toAPI   = time.Millisecond
	toAzure = 20 * time.Millisecond
)

// Errors returned to a killed process.
var (
	errNoWay = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errLost  = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// apiWire is the transport of a process to the API server.
type apiWire struct {
	process *process
	next    http.RoundTripper
}

func (w *apiWire) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := w.process.stage.elapsed()
	resp, err := w.process.send(req, toAPI, w.next.RoundTrip)
	if err == nil {
		w.process.renews(req, resp, sent)
	}
	return resp, err
}

// azureWire is the transport of a process to Azure.
type azureWire struct {
	process *process
	next    *armemu.Transport
}

func (w *azureWire) Do(req *http.Request) (*http.Response, error) {
	dies, after := w.process.stage.fatal.counts()
	if dies && !after {
		w.process.dies()
	}
	resp, err := w.process.send(req, toAzure, w.next.Do)
	if dies && after {
		w.process.dies()
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errLost
	}
	return resp, err
}

// fatal is the Azure request that kills its process.
type fatal struct {
	mu    sync.Mutex
	in    int // requests left; zero: never
	after bool
}

// DiesAt kills the process that sends the given Azure request, counted from now: before the request
// arrives, or after it was answered.
func (s *Stage) DiesAt(request int, after bool) {
	s.fatal.mu.Lock()
	defer s.fatal.mu.Unlock()
	s.fatal.in, s.fatal.after = request, after
}

// counts counts a request and reports whether it kills its process.
func (f *fatal) counts() (dies, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in > 0 {
		f.in--
		dies = f.in == 0
	}
	return dies, f.after
}

// send delivers a request and its response. A request in flight still arrives if its process dies.
func (p *process) send(req *http.Request, distance time.Duration, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if p.dead.Load() {
		return nil, p.refuse(req)
	}
	p.may(req)
	travel(req, distance)
	if err := req.Context().Err(); err != nil { // already sent, so it arrives; a watch is dropped
		if req.URL.Query().Has("watch") {
			return nil, err
		}
		req = req.WithContext(context.WithoutCancel(req.Context()))
		if resp, sent := next(req); sent == nil {
			_ = resp.Body.Close()
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
		_ = resp.Body.Close()
		return nil, lost
	}
	resp.Body = &body{resp.Body, p}
	return resp, nil
}

func (p *process) refuse(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // the RoundTripper contract; nothing was read
	}
	return errNoWay
}

// travel waits for d or until the request is canceled.
func travel(req *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
}

// body is a response body that ends with the context of its reader.
type body struct {
	io.ReadCloser
	process *process
}

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
