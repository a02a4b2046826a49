// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"weir.dev/weir/test/controlplane"
)

// tap proxies one program's requests to Azure and the API server, to distinguish its changes from
// those of others.
type tap struct {
	l     *lab
	azure *httptest.Server
	api   *httptest.Server

	mu sync.Mutex
	// toAzure and toAPI are the write requests.
	toAzure, toAPI []change
	// held is the next request to delay, unless nil.
	held *heldRequest
}

type change struct {
	at   time.Time
	what string
}

// heldRequest is a request for a pool that is delayed before it reaches Azure, or its response is. waits is closed then.
type heldRequest struct {
	method, pool   string
	beforeAzure    bool
	waits, release chan struct{}
}

func newTap(l *lab) *tap {
	l.t.Helper()
	t := &tap{l: l}
	t.azure = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.notes(&t.toAzure, r)
		held := t.takeHeld(r)
		if held != nil && held.beforeAzure {
			body, err := io.ReadAll(r.Body) // the server detects the end of the connection only then
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err != nil || !held.wait(r) {
				return
			}
		}
		l.emulator.ServeHTTP(w, r)
		if held != nil && !held.beforeAzure {
			held.wait(r)
		}
	}))
	cfg := rest.CopyConfig(l.cluster.rest)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: serviceAccount}
	transport, err := rest.TransportFor(cfg)
	l.must(err)
	server, err := url.Parse(cfg.Host)
	l.must(err)
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // the program has exited
	t.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.notes(&t.toAPI, r)
		proxy.ServeHTTP(w, r)
	}))
	l.t.Cleanup(func() {
		t.azure.CloseClientConnections()
		t.azure.Close()
		t.api.CloseClientConnections()
		t.api.Close()
	})
	return t
}

// controller starts weir behind the tap.
func (t *tap) controller(name string, flags ...string) *program {
	t.l.t.Helper()
	kubeconfig := filepath.Join(t.l.dir, name)
	t.l.must(controlplane.WriteKubeconfig(kubeconfig, &rest.Config{Host: t.api.URL}, ""))
	return t.l.controller(append([]string{"--kubeconfig", kubeconfig, "--azure-endpoint", t.azure.URL}, flags...)...)
}

func (t *tap) notes(in *[]change, r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	*in = append(*in, change{time.Now(), r.Method + " " + r.URL.Path})
}

// takeHeld returns the held request if r is it.
func (t *tap) takeHeld(r *http.Request) *heldRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.held
	if h == nil || r.Method != h.method || !strings.Contains(strings.ToLower(r.URL.Path), "/backendaddresspools/"+strings.ToLower(h.pool)) {
		return nil
	}
	t.held = nil
	return h
}

// wait reports whether the request was released before its program ended.
func (h *heldRequest) wait(r *http.Request) bool {
	close(h.waits)
	select {
	case <-h.release:
		return true
	case <-r.Context().Done():
		return false
	}
}

// holdNextRead delays the response to the next pool read.
func (t *tap) holdNextRead() *heldRequest { return t.hold(heldRequest{method: http.MethodGet}) }

func (t *tap) hold(h heldRequest) *heldRequest {
	h.waits, h.release = make(chan struct{}), make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = &h
	return &h
}

func (t *tap) changesAfter(at time.Time, in *[]change) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var late []string
	for _, c := range *in {
		if c.at.After(at) {
			late = append(late, c.at.Sub(at).Round(time.Millisecond).String()+" "+c.what)
		}
	}
	return late
}

// firstWrite returns the time of the first Azure write; zero if none.
func (t *tap) firstWrite(tb testing.TB) time.Time {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.toAzure) == 0 {
		tb.Fatal("it has written nothing")
	}
	return t.toAzure[0].at
}
