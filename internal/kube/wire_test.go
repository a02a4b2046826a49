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

// verdict is the injected result of a request; the zero value passes it.
type verdict struct {
	status     int
	code       string // of the body; empty means no body
	retryAfter string // seconds
	torn       bool   // truncate the body
}

var (
	refused   = verdict{status: http.StatusBadRequest, code: "InvalidRequestFormat"}
	throttled = verdict{status: http.StatusTooManyRequests, code: "SomeThrottle", retryAfter: "4"}
	locked    = verdict{status: http.StatusTooManyRequests, code: "RetryableErrorDueToAnotherOperation", retryAfter: "6"}
	nameless  = verdict{status: http.StatusNotFound}
	torn      = verdict{status: http.StatusNotFound, code: "ResourceNotFound", torn: true}
)

type wire struct{ to azure.Transport }

var verdicts = struct {
	sync.Mutex
	of   map[string][]verdict   // by method and pool ID, in order
	sent map[string][]time.Time // by pool ID: the time of each request
}{of: map[string][]verdict{}, sent: map[string][]time.Time{}}

func (s *scene) wireID(pool string) string {
	return strings.ToLower(s.lbID() + "/backendAddressPools/" + pool)
}

func (s *scene) meets(pool string, of ...verdict) {
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.of[http.MethodPut+s.wireID(pool)] = of
}

func (s *scene) finds(pool string, of ...verdict) {
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.of[http.MethodGet+s.wireID(pool)] = of
}

func (s *scene) unmet(pool string) int {
	verdicts.Lock()
	defer verdicts.Unlock()
	return len(verdicts.of[http.MethodPut+s.wireID(pool)])
}

func (s *scene) sent(pool string) []time.Time {
	verdicts.Lock()
	defer verdicts.Unlock()
	return slices.Clone(verdicts.sent[s.wireID(pool)])
}

// looks counts the requests that may have read a pool, including those for its load balancer.
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
