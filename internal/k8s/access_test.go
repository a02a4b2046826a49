// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// reviewer answers reviews for two tokens, one of which may get /metrics.
type reviewer struct {
	asked         atomic.Int32
	down, revoked atomic.Bool
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.down.Load() {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	r.asked.Add(1)
	var answer any
	if strings.HasSuffix(req.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(req.Body).Decode(&review)
		if token := review.Spec.Token; token == "reader" || token == "stranger" {
			review.Status.Authenticated, review.Status.User.Username = true, token
		}
		answer = review
	} else {
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(req.Body).Decode(&review)
		name := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && !r.revoked.Load() && *name == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// A reader is reviewed once a minute, and reviews of unknown tokens are limited.
func TestMetricsAccess(t *testing.T) {
	r := &reviewer{}
	server := httptest.NewServer(r)
	defer server.Close()
	cfg := &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := MetricsAccess(cfg, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	served, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	if err != nil {
		t.Fatal(err)
	}
	source := "10.0.0.1:4000"
	ask := func(method, path, authorization string) int {
		req := httptest.NewRequest(method, path, nil)
		req.RemoteAddr = source
		req.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		served.ServeHTTP(w, req)
		if w.Code != http.StatusOK && strings.Contains(w.Body.String(), "metrics") {
			t.Errorf("%d with the metrics", w.Code)
		}
		return w.Code
	}
	for i, tt := range []struct {
		method, path, authorization string
		want                        int
		asks                        int32
	}{
		{"GET", "/metrics", "", 401, 0},
		{"GET", "/metrics", "Basic reader", 401, 0},
		{"GET", "/metrics", "Bearer ", 401, 0},
		{"GET", "/metrics", "Bearer nobody", 401, 1},
		{"GET", "/metrics", "Bearer stranger", 403, 2},
		{"GET", "/metrics", "Bearer reader", 200, 2},
		{"GET", "/metrics", "Bearer reader", 200, 0}, // cached
		{"GET", "/other", "Bearer reader", 403, 2},
		{"POST", "/metrics", "Bearer reader", 403, 2},
	} {
		source = fmt.Sprintf("10.0.0.%d:4000", 10+i)
		before := r.asked.Load()
		if got := ask(tt.method, tt.path, tt.authorization); got != tt.want || r.asked.Load()-before != tt.asks {
			t.Errorf("%s %s of %q: %d after %d questions, want %d after %d", tt.method, tt.path, tt.authorization, got, r.asked.Load()-before, tt.want, tt.asks)
		}
	}
	source = "10.0.0.1:4000"
	for range 100 {
		ask("GET", "/metrics", "Bearer nobody")
	}
	if got := ask("GET", "/metrics", "Bearer nobody"); got != http.StatusTooManyRequests {
		t.Errorf("a source too often: %d", got)
	}
	source = "10.0.0.2:4000"
	if got := ask("GET", "/metrics", "Bearer stranger"); got != http.StatusForbidden {
		t.Errorf("another source meanwhile: %d", got)
	}
	for i := range 100 {
		source = fmt.Sprintf("10.0.1.%d:4000", i)
		ask("GET", "/metrics", "Bearer nobody")
	}
	if n := r.asked.Load(); n > 60 {
		t.Errorf("%d questions", n)
	}
	if got := ask("GET", "/metrics", "Bearer somebody"); got != http.StatusTooManyRequests {
		t.Errorf("one stranger too many: %d", got)
	}
	if got := ask("GET", "/metrics", "Bearer reader"); got != http.StatusOK {
		t.Errorf("the reader among strangers: %d", got)
	}
}

func TestReaderReviewsExpire(t *testing.T) {
	r := &reviewer{}
	server := httptest.NewServer(r)
	defer server.Close()
	a, err := NewAccess(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	log := funcr.New(func(prefix, args string) { logged.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 20})
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil).WithContext(klog.NewContext(t.Context(), log))
	req.Header.Set("Authorization", "Bearer reader")
	now := time.Now()
	if status, err := a.Authorize(req.Context(), BearerToken(req), SourceAddress(req), "get", "/metrics", now); status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	r.down.Store(true)
	if status, err := a.Authorize(req.Context(), BearerToken(req), SourceAddress(req), "get", "/metrics", now.Add(accessTTL-time.Second)); status != http.StatusOK || err != nil {
		t.Errorf("within a minute: %d, %v", status, err)
	}
	if status, err := a.Authorize(req.Context(), BearerToken(req), SourceAddress(req), "get", "/metrics", now.Add(accessTTL)); status != http.StatusServiceUnavailable || err == nil {
		t.Errorf("after it, while the API server does not answer: %d, %v", status, err)
	}
	if strings.Contains(logged.String(), "reader") {
		t.Errorf("the token is logged:\n%s", logged.String())
	}
}

func TestSources(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:4000": "10.0.0.1", "[::ffff:10.0.0.1]:4000": "10.0.0.1", "[2001:db8::1:2]:4000": "2001:db8::", "[fe80::1%eth0]:4000": "fe80::", "@": "invalid IP",
	} {
		if got := SourceAddress(&http.Request{RemoteAddr: remote}).String(); got != want {
			t.Errorf("%s is %s, want %s", remote, got, want)
		}
	}
	a, err := NewAccess(&rest.Config{Host: "localhost"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	now, addr := time.Now(), netip.MustParseAddr("10.0.0.0")
	for range 3 * maxSources {
		for range 2 * sourceBurst {
			a.allowSource(addr, now)
		}
		if a.allowSource(addr, now) {
			t.Fatalf("%s has no bound", addr)
		}
		if addr = addr.Next(); len(a.sources) > maxSources {
			t.Fatalf("%d sources are remembered", len(a.sources))
		}
	}
	if a.allowSource(addr, now.Add(time.Minute)); len(a.sources) != 1 {
		t.Errorf("%d are remembered whose time is over", len(a.sources))
	}
}

// Unknown tokens from many addresses block no reader with an expired review, and keep none with a
// revoked right.
func TestAReaderIsReviewedBesideUnknownTokens(t *testing.T) {
	r := &reviewer{}
	server := httptest.NewServer(r)
	defer server.Close()
	a, err := NewAccess(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	now, reader := time.Now(), netip.MustParseAddr("10.0.0.1")
	ask := func(token, path string, from netip.Addr) int {
		status, _ := a.Authorize(t.Context(), token, from, "get", path, now)
		return status
	}
	if got := ask("reader", "/metrics", reader); got != http.StatusOK {
		t.Fatal(got)
	}
	for range 3 {
		now = now.Add(accessTTL)
		from, limited := netip.MustParseAddr("10.1.0.0"), false
		for range 100 {
			from = from.Next()
			limited = ask("nobody", "/metrics", from) == http.StatusTooManyRequests || limited
		}
		if !limited {
			t.Fatal("unknown tokens are not limited")
		}
		if got := ask("reader", "/metrics", reader); got != http.StatusOK {
			t.Errorf("the reader beside them: %d", got)
		}
	}
	now = now.Add(accessTTL)
	if r.revoked.Store(true); ask("reader", "/metrics", reader) != http.StatusForbidden || len(a.allowed) != 0 {
		t.Errorf("a right that was taken away is remembered: %d", len(a.allowed))
	}
	r.revoked.Store(false)
	if ask("reader", "/metrics", reader); len(a.allowed) != 1 {
		t.Fatal("the reader is not remembered")
	}
	for i := range 2 * maxTokens { // only expired entries make room
		if i == maxTokens-1 {
			now = now.Add(accessTTL)
		}
		a.addCached(sha256.Sum256([]byte{byte(i)}), now)
	}
	if n := len(a.allowed); n > maxTokens || ask("reader", "/metrics", reader) != http.StatusOK {
		t.Errorf("%d are remembered", n)
	}
	now = now.Add(accessTTL + readerTTL)
	if a.addCached(sha256.Sum256(nil), now); len(a.allowed) != 1 {
		t.Errorf("%d are remembered that have expired", len(a.allowed))
	}
}
