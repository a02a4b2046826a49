// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
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
	// held delays the next response to a pool read, unless nil.
	held *delayedResponse
}

type change struct {
	at   time.Time
	what string
}

// delayedResponse is a delayed response. Asked is closed when a request waits for it.
type delayedResponse struct{ asked, release chan struct{} }

func newTap(l *lab) *tap {
	l.t.Helper()
	t := &tap{l: l}
	t.azure = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.notes(&t.toAzure, r)
		defer t.delayIfHeld(r)
		l.emulator.ServeHTTP(w, r)
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

// delayIfHeld delays a read's response if requested.
func (t *tap) delayIfHeld(r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/backendAddressPools/") {
		return
	}
	t.mu.Lock()
	h := t.held
	t.held = nil
	t.mu.Unlock()
	if h == nil {
		return
	}
	close(h.asked)
	select {
	case <-h.release:
	case <-r.Context().Done():
	}
}

// holdNextRead delays the next pool read.
func (t *tap) holdNextRead() *delayedResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = &delayedResponse{make(chan struct{}), make(chan struct{})}
	return t.held
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
