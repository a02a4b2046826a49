// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
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
	errUnreachable  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errResponseLost = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// apiWire is the transport of a process to the API server.
type apiWire struct {
	process *process
	next    http.RoundTripper
}

func (w *apiWire) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := w.process.stage.sinceStart()
	distance := toAPI
	if isDiscovery(req) {
		distance = 0 // the REST mapper holds its mutex for it, and time does not pass while another goroutine waits for a mutex
	}
	resp, err := w.process.sendRequest(req, distance, w.next.RoundTrip)
	if err == nil {
		w.process.recordRenewal(req, resp, sent)
	}
	return resp, err
}

// isDiscovery reports whether a request is for groups or for the resources of a version: /api/v1, /apis/GROUP/VERSION.
func isDiscovery(req *http.Request) bool {
	segments := strings.Count(req.URL.Path, "/")
	return segments <= 2 || segments == 3 && strings.HasPrefix(req.URL.Path, "/apis/")
}

// azureWire is the transport of a process to Azure.
type azureWire struct {
	process *process
	next    *armemu.Transport
}

func (w *azureWire) Do(req *http.Request) (*http.Response, error) {
	dies, after := w.process.stage.killPoint.countRequest()
	if dies && !after {
		w.process.applyKill()
	}
	resp, err := w.process.sendRequest(req, toAzure, w.next.Do)
	if dies && after {
		w.process.applyKill()
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errResponseLost
	}
	return resp, err
}

// requestKill is the Azure request that kills its process.
type requestKill struct {
	mu           sync.Mutex
	requestsLeft int // requests left; zero: never
	after        bool
}

// KillAtRequest kills the process that sends the given Azure request, counted from now: before the request
// arrives, or after it was answered.
func (s *Stage) KillAtRequest(request int, after bool) {
	s.killPoint.mu.Lock()
	defer s.killPoint.mu.Unlock()
	s.killPoint.requestsLeft, s.killPoint.after = request, after
}

// countRequest counts a request and reports whether it kills its process.
func (r *requestKill) countRequest() (dies, after bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requestsLeft > 0 {
		r.requestsLeft--
		dies = r.requestsLeft == 0
	}
	return dies, r.after
}

// sendRequest delivers a request and its response. A request in flight still arrives if its process dies.
func (p *process) sendRequest(req *http.Request, distance time.Duration, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if p.killed.Load() {
		return nil, p.rejectRequest(req)
	}
	p.checkRequest(req)
	waitLatency(req, distance)
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
	p.stage.recordRuleMembers()
	waitLatency(req, distance)
	lost := req.Context().Err()
	if lost == nil && p.killed.Load() {
		lost = errResponseLost
	}
	if lost != nil {
		_ = resp.Body.Close()
		return nil, lost
	}
	resp.Body = &responseBody{resp.Body, p}
	return resp, nil
}

func (p *process) rejectRequest(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // the RoundTripper contract; nothing was read
	}
	return errUnreachable
}

// waitLatency waits for d or until the request is canceled.
func waitLatency(req *http.Request, d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
}

// responseBody is a response body that ends with the context of its reader.
type responseBody struct {
	io.ReadCloser
	process *process
}

func (b *responseBody) Read(p []byte) (int, error) {
	if b.process.killed.Load() {
		return 0, errResponseLost
	}
	n, err := b.ReadCloser.Read(p)
	if b.process.killed.Load() {
		return 0, errResponseLost
	}
	return n, err
}
