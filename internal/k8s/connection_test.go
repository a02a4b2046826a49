// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

type flakyTransport struct {
	errs  []error
	tries int
}

func (f *flakyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	f.tries++
	if len(f.errs) == 0 {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, err
}

func TestAReadWaitsForAConnection(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, tt := range []struct {
		name   string
		method string
		errs   []error
		tries  int
		after  time.Duration
		err    error
		lines  int // of the log
		back   int
	}{
		{"an answer", http.MethodGet, nil, 1, 0, nil, 0, 0},
		{"a read waits", http.MethodGet, []error{refused, refused, refused}, 4, 3 * time.Second, nil, 2, 1},
		{"a write does not", http.MethodPatch, []error{refused}, 1, 0, syscall.ECONNREFUSED, 1, 0},
		{"a reset is client-go's", http.MethodGet, []error{reset}, 1, 0, syscall.ECONNRESET, 0, 0},
		{"a read that gives up", http.MethodGet, []error{refused, refused, refused, refused, refused, refused, refused}, 5, 4500 * time.Millisecond, syscall.ECONNREFUSED, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				reach, wire, back := NewConnection(t.Context(), slog.New(slog.NewTextHandler(&out, nil))), &flakyTransport{errs: tt.errs}, 0
				reach.SetCallbacks(func() { back++ }, func() {})
				cfg := reach.ClientConfig(&rest.Config{Host: "https://127.0.0.1:1"}, "weir/test")
				ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, tt.method, cfg.Host, nil)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = cfg.WrapTransport(wire).RoundTrip(req)
				if wire.tries != tt.tries || time.Since(start) != tt.after || !errors.Is(err, tt.err) {
					t.Errorf("%d tries in %s, %v", wire.tries, time.Since(start), err)
				}
				if got := strings.Count(out.String(), "\n"); got != tt.lines || back != tt.back {
					t.Errorf("%d lines, back %d times:\n%s", got, back, out.String())
				}
			})
		})
	}
}

// Responses of a healthy server trigger onHealthy.
func TestResponsesThatProveAServer(t *testing.T) {
	for status, want := range map[int]bool{200: true, 201: true, 404: true, 409: true, 422: true, 429: false, 500: false, 503: false, 504: false} {
		well := false
		reach := NewConnection(t.Context(), slog.New(slog.DiscardHandler))
		reach.SetCallbacks(func() {}, func() { well = true })
		reach.notifyHealthy(&http.Response{StatusCode: status})
		if well != want {
			t.Errorf("%d: %v, want %v", status, well, want)
		}
	}
}

// A read without a context ends with the process.
func TestAReadEndsWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		reach := NewConnection(ctx, slog.New(slog.DiscardHandler))
		wire := &flakyTransport{errs: slices.Repeat([]error{refused}, 1000)}
		time.AfterFunc(time.Minute+time.Millisecond, stop)
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://apiserver/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err = (&retryTransport{wire, reach}).RoundTrip(req); !errors.Is(err, refused) || time.Since(start) > time.Minute+time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
