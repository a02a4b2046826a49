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

// tap is the way of one program to Azure and to the API server: it tells what that one
// changes from what another does.
type tap struct {
	l     *lab
	azure *httptest.Server
	api   *httptest.Server

	mu sync.Mutex
	// toAzure and toAPI are the requests that change something.
	toAzure, toAPI []change
	// held has the next answer to a read of a pool wait; nil holds none.
	held *held
}

type change struct {
	at   time.Time
	what string
}

// held is an answer that waits. Asked is closed when somebody waits for it.
type held struct{ asked, release chan struct{} }

func newTap(l *lab) *tap {
	l.t.Helper()
	t := &tap{l: l}
	t.azure = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.notes(&t.toAzure, r)
		defer t.holds(r)
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
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // the program has ended
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

// controller starts weir on this way.
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

// holds keeps the handler of a read, and so the end of its answer, if that is to wait.
func (t *tap) holds(r *http.Request) {
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

// holdNextRead has the next read of a pool wait for its answer.
func (t *tap) holdNextRead() *held {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = &held{make(chan struct{}), make(chan struct{})}
	return t.held
}

// after returns what was changed after a time.
func (t *tap) after(at time.Time, in *[]change) []string {
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

// first is when this one first wrote to Azure; zero if it never did.
func (t *tap) first(tb testing.TB) time.Time {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.toAzure) == 0 {
		tb.Fatal("it has written nothing")
	}
	return t.toAzure[0].at
}
