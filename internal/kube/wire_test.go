// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"weir.dev/weir/internal/azure"
)

// verdict is what a write of a pool meets; the zero value lets it through.
type verdict struct {
	status     int
	code       string
	retryAfter string // seconds
}

var (
	refused   = verdict{status: http.StatusBadRequest, code: "InvalidRequestFormat"}
	throttled = verdict{status: http.StatusTooManyRequests, code: "SomeThrottle", retryAfter: "4"}
	locked    = verdict{status: http.StatusTooManyRequests, code: "RetryableErrorDueToAnotherOperation", retryAfter: "6"}
)

// wire carries requests to the emulator, but for writes that a scene has a verdict for.
type wire struct{ to azure.Transport }

var verdicts = struct {
	sync.Mutex
	of map[string][]verdict // by ARM id of the pool, the next one first
}{of: map[string][]verdict{}}

// meets sets what the next writes of a pool meet, in their order.
func (s *scene) meets(pool string, of ...verdict) {
	verdicts.Lock()
	defer verdicts.Unlock()
	verdicts.of[strings.ToLower(s.lbID()+"/backendAddressPools/"+pool)] = of
}

// unmet is how many of the verdicts are left.
func (s *scene) unmet(pool string) int {
	verdicts.Lock()
	defer verdicts.Unlock()
	return len(verdicts.of[strings.ToLower(s.lbID()+"/backendAddressPools/"+pool)])
}

func next(req *http.Request) verdict {
	id := strings.ToLower(req.URL.Path)
	verdicts.Lock()
	defer verdicts.Unlock()
	if req.Method != http.MethodPut || len(verdicts.of[id]) == 0 {
		return verdict{}
	}
	v := verdicts.of[id][0]
	verdicts.of[id] = verdicts.of[id][1:]
	return v
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
	body := fmt.Sprintf(`{"error":{"code":%q,"message":"Not\nnow."}}`, v.code)
	return &http.Response{
		StatusCode: v.status, Status: http.StatusText(v.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}
