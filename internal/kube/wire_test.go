// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/iotest"
	"time"

	"weir.dev/weir/internal/azure"
)

// verdict is what a request for a pool meets; the zero value lets it through.
type verdict struct {
	status     int
	code       string // of the body; without one there is no body
	retryAfter string // seconds
	torn       bool   // the body breaks off
}

var (
	refused   = verdict{status: http.StatusBadRequest, code: "InvalidRequestFormat"}
	throttled = verdict{status: http.StatusTooManyRequests, code: "SomeThrottle", retryAfter: "4"}
	locked    = verdict{status: http.StatusTooManyRequests, code: "RetryableErrorDueToAnotherOperation", retryAfter: "6"}
	nameless  = verdict{status: http.StatusNotFound}
	torn      = verdict{status: http.StatusNotFound, code: "ResourceNotFound", torn: true}
)

// wire carries requests to the emulator, but for those that a scene has a verdict for.
type wire struct{ to azure.Transport }

var verdicts = struct {
	sync.Mutex
	of   map[string][]verdict   // by method and ARM id of the pool, the next one first
	sent map[string][]time.Time // by ARM id of the pool: when each request was sent
}{of: map[string][]verdict{}, sent: map[string][]time.Time{}}

func (s *scene) wireID(pool string) string {
	return strings.ToLower(s.lbID() + "/backendAddressPools/" + pool)
}

// meets sets what the next writes of a pool meet, in their order.
func (s *scene) meets(pool string, of ...verdict) {
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.of[http.MethodPut+s.wireID(pool)] = of
}

// finds sets what the next reads of a pool meet, in their order.
func (s *scene) finds(pool string, of ...verdict) {
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.of[http.MethodGet+s.wireID(pool)] = of
}

// unmet is how many of the verdicts on writes are left.
func (s *scene) unmet(pool string) int {
	verdicts.Lock()
	defer verdicts.Unlock()
	return len(verdicts.of[http.MethodPut+s.wireID(pool)])
}

// sent returns when each request for a pool was sent, so far.
func (s *scene) sent(pool string) []time.Time {
	verdicts.Lock()
	defer verdicts.Unlock()
	return slices.Clone(verdicts.sent[s.wireID(pool)])
}

// looks counts the requests that may have looked at a pool: those of it, and those of its load balancer.
func (s *scene) looks(pool string) int {
	verdicts.Lock()
	defer verdicts.Unlock()
	return len(verdicts.sent[s.wireID(pool)]) + len(verdicts.sent[strings.ToLower(s.lbID())])
}

func next(req *http.Request) verdict {
	id := strings.ToLower(req.URL.Path)
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.sent[id] = append(verdicts.sent[id], time.Now())
	of := verdicts.of[req.Method+id]
	if len(of) == 0 {
		return verdict{}
	}
	verdicts.of[req.Method+id] = of[1:]
	return of[0]
}

// duringPut is called while a write is on its way.
var duringPut atomic.Pointer[func()]

// Do implements azure.Transport.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	if during := duringPut.Load(); during != nil && req.Method == http.MethodPut {
		(*during)()
	}
	v := next(req)
	if v.status == 0 {
		return w.to.Do(req)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if v.retryAfter != "" {
		header.Set("Retry-After", v.retryAfter)
	}
	text := ""
	if v.code != "" {
		text = fmt.Sprintf(`{"error":{"code":%q,"message":"Not\nnow."}}`, v.code)
	}
	var body io.Reader = strings.NewReader(text)
	if v.torn {
		body = io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	return &http.Response{
		StatusCode: v.status, Status: http.StatusText(v.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: int64(len(text)), Request: req,
	}, nil
}
