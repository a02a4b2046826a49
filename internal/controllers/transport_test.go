// SPDX-License-Identifier: Apache-2.0

package controllers_test

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

// injectedResult is the injected result of a request; the zero value passes it.
type injectedResult struct {
	status     int
	code       string // of the body; empty means no body
	retryAfter string // seconds
	truncated  bool   // truncate the body
}

// retryAfter is longer than a busy machine needs to check the state of a throttled pool.
const retryAfter = 15 * time.Second

var (
	refused   = injectedResult{status: http.StatusBadRequest, code: "InvalidRequestFormat"}
	throttled = injectedResult{status: http.StatusTooManyRequests, code: "SomeThrottle", retryAfter: fmt.Sprint(int(retryAfter.Seconds()))}
	locked    = injectedResult{status: http.StatusTooManyRequests, code: "RetryableErrorDueToAnotherOperation", retryAfter: "30"}
	nameless  = injectedResult{status: http.StatusNotFound}
	torn      = injectedResult{status: http.StatusNotFound, code: "ResourceNotFound", truncated: true}
)

type injectingTransport struct{ to azure.Transport }

var injectedResults = struct {
	sync.Mutex
	of   map[string][]injectedResult // by method and pool ID, in order
	sent map[string][]time.Time      // by pool ID: the time of each request
}{of: map[string][]injectedResult{}, sent: map[string][]time.Time{}}

func (env *testEnv) wireID(pool string) string {
	return strings.ToLower(env.lbID() + "/backendAddressPools/" + pool)
}

func (env *testEnv) setWriteResults(pool string, of ...injectedResult) {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	injectedResults.of[http.MethodPut+env.wireID(pool)] = of
}

func (env *testEnv) setReadResults(pool string, of ...injectedResult) {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	injectedResults.of[http.MethodGet+env.wireID(pool)] = of
}

func (env *testEnv) remainingResults(pool string) int {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	return len(injectedResults.of[http.MethodPut+env.wireID(pool)])
}

func (env *testEnv) requestTimes(pool string) []time.Time {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	return slices.Clone(injectedResults.sent[env.wireID(pool)])
}

// countReads counts the requests that may have read a pool, including those for its load balancer.
func (env *testEnv) countReads(pool string) int {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	return len(injectedResults.sent[env.wireID(pool)]) + len(injectedResults.sent[strings.ToLower(env.lbID())])
}

func nextResult(req *http.Request) injectedResult {
	id := strings.ToLower(req.URL.Path)
	injectedResults.Lock()
	defer injectedResults.Unlock()
	injectedResults.sent[id] = append(injectedResults.sent[id], time.Now())
	of := injectedResults.of[req.Method+id]
	if len(of) == 0 {
		return injectedResult{}
	}
	injectedResults.of[req.Method+id] = of[1:]
	return of[0]
}

var duringPut atomic.Pointer[func()]

// Do implements azure.Transport.
func (i *injectingTransport) Do(req *http.Request) (*http.Response, error) {
	if during := duringPut.Load(); during != nil && req.Method == http.MethodPut {
		(*during)()
	}
	v := nextResult(req)
	if v.status == 0 {
		return i.to.Do(req)
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
	if v.truncated {
		body = io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	return &http.Response{
		StatusCode: v.status, Status: http.StatusText(v.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: int64(len(text)), Request: req,
	}, nil
}
