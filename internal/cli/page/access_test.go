// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/app"
)

// Access requires the full URL and a loopback Host header, and is read-only.
func TestPageAccess(t *testing.T) {
	guarded := requireToken("KEY", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	for _, tt := range []struct {
		name, method, host, path string
		status                   int
	}{
		{"who was given the address", "GET", "127.0.0.1:8030", "/KEY/pools", 200},
		{"by name", "GET", "localhost:8030", "/KEY/", 200},
		{"IPv6", "GET", "[::1]:8030", "/KEY/", 200},
		{"a look ahead", "HEAD", "127.0.0.1:8030", "/KEY/", 200},
		{"who knows the port alone", "GET", "127.0.0.1:8030", "/", 404},
		{"who guesses", "GET", "127.0.0.1:8030", "/KEX/", 404},
		{"who knows how it begins", "GET", "127.0.0.1:8030", "/KE/", 404},
		{"a script of another owner's", "GET", "127.0.0.1:8030", "/page.js", 404},
		{"another owner's name for this machine", "GET", "weir.example:8030", "/KEY/", 403},
		{"nobody's name", "GET", "", "/KEY/", 403},
		{"a write", "POST", "127.0.0.1:8030", "/KEY/", 405},
		{"another write", "DELETE", "127.0.0.1:8030", "/KEY/pool/a/b", 405},
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.URL.Path, r.Host = tt.path, tt.host
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != tt.status || tt.status == http.StatusOK && w.Body.String() != strings.TrimPrefix(tt.path, "/KEY") {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		if h := w.Header(); !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", tt.name, h)
		}
	}
}

// said receives the printed lines.
type said chan string

func (s said) Write(b []byte) (int, error) { s <- string(b); return len(b), nil }

// The page is served at the printed URL, with a new token each time, until its context ends.
func TestServe(t *testing.T) {
	keys := map[string]bool{}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		out, ended := make(said, 1), make(chan error)
		go func() {
			ended <- Serve(ctx, Options{API: server(), Listen: "127.0.0.1:0", Connection: app.Connection{Server: app.LeaderServer}, Out: out})
		}()
		address := strings.Fields(<-out)[2]
		keys[address[strings.LastIndex(address[:len(address)-1], "/"):]] = true
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("<main id=\"content\"")) {
			t.Errorf("%v, %s, %s", err, resp.Status, body)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(keys) != 2 {
		t.Error(keys)
	}
}

// Without viewers there are no goroutines except the listener, and no requests to the API server.
func TestNoGoroutineWithoutViewer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, ended := make(said, 1), make(chan error)
	go func() {
		ended <- Serve(ctx, Options{API: server(shop()...), Listen: "127.0.0.1:0", Connection: app.Connection{Server: app.LeaderServer}, Out: out})
	}()
	address := strings.Fields(<-out)[2]
	for range 2 {
		for deadline := time.Now().Add(5 * time.Minute); ; runtime.Gosched() {
			stacks := make([]byte, 1<<20)
			text := string(stacks[:runtime.Stack(stacks, true)])
			if n := strings.Count(text, "created by weir.dev/weir/internal/cli/page.") - strings.Count(text, "created by weir.dev/weir/internal/cli/page.Test"); n == 0 {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%d still run:\n%s", n, text)
			}
		}
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The page listens only on loopback.
func TestListenAddresses(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:8030", ":8030", "[::]:8030", "10.0.0.1:8030", "weir.example:8030", "8030", ""} {
		err := Serve(t.Context(), Options{Listen: listen, Out: io.Discard})
		if _, usage := errors.AsType[*app.UsageError](err); !usage || !strings.Contains(err.Error(), "127.0.0.1:8030") {
			t.Errorf("%q: %v", listen, err)
		}
	}
	if err := Serve(t.Context(), Options{Listen: "127.0.0.1:0", Connection: app.Connection{Server: "127.0.0.1:8082"}, Out: io.Discard}); err == nil || !strings.Contains(err.Error(), "--operator-url") {
		t.Error(err)
	}
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	if err := Serve(t.Context(), Options{Listen: taken.Listener.Addr().String(), Connection: app.Connection{Server: app.LeaderServer}, Out: io.Discard}); err == nil || !strings.Contains(err.Error(), "--listen 127.0.0.1:0") {
		t.Error(err)
	}
}
