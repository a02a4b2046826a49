// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Proxy is a kube-apiserver with faults. It is safe for concurrent use.
type Proxy struct {
	*Network

	server *http.Server
	ca     []byte
	base   *url.URL
	to     http.RoundTripper

	mu       sync.Mutex
	rules    []*ruleState
	calls    []*Call
	confined string
}

type connKey struct{}

// New starts a proxy for the kube-apiserver of cfg. Its clients have the permissions of cfg, or of
// the user they impersonate.
func New(cfg *rest.Config) (*Proxy, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	to, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	below, err := NewNetwork()
	if err != nil {
		return nil, err
	}
	// httptest's certificate for 127.0.0.1.
	borrowed := httptest.NewTLSServer(http.NotFoundHandler())
	defer borrowed.Close()
	p := &Proxy{Network: below, base: base, to: to}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: borrowed.Certificate().Raw})
	p.server = &http.Server{ //nolint:gosec // a watch has no deadline
		Handler:     p,
		TLSConfig:   &tls.Config{Certificates: borrowed.TLS.Certificates, MinVersion: tls.VersionTLS12},
		ErrorLog:    log.New(io.Discard, "", 0), // broken handshakes are expected
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	below.Serve(func(l net.Listener) { _ = p.server.ServeTLS(l, "", "") }) // returns when l is closed
	return p, nil
}

// Config returns a client configuration for the proxy.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: "https://" + p.Address, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}}
}

// Close stops the proxy and all running requests.
func (p *Proxy) Close() {
	p.Network.Close()    // first: the server cannot close silent connections
	_ = p.server.Close() // nothing to save
}

// Confine restricts lists and watches of all namespaces to one namespace, so that several
// controllers can share a kube-apiserver.
func (p *Proxy) Confine(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confined = namespace
}

// confine returns the path to send a request to.
func (p *Proxy) confine(r Request, path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.confined == "" || r.Namespace != "" || r.Name != "" || !namespaced[r.Resource] || r.Verb != "list" && r.Verb != "watch" {
		return path
	}
	return strings.TrimSuffix(path, r.Resource) + "namespaces/" + p.confined + "/" + r.Resource
}

var namespaced = map[string]bool{"backendpools": true, "endpointslices": true, "services": true}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	call := p.begin(r, body)
	f := p.fault(call.Request)
	switch {
	case f.Hangs:
		<-r.Context().Done()
	case f.Conn == Reset || f.Conn == Closed || f.Conn == GoAway:
		if f.Landed {
			p.lose(call, r, body)
		}
		if c, ok := r.Context().Value(connKey{}).(*tls.Conn); ok {
			breakConn(c, f.Conn)
		}
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.Landed {
			p.lose(call, r, body)
		}
		p.note(func() { call.Status = f.Status })
		answer(w, f.Status, f.RetryAfter, statusOf(f.Status))
	case f.Expired:
		p.note(func() { call.Status = http.StatusOK })
		answer(w, http.StatusOK, "", expired())
	default:
		p.forward(w, call, r, body, f)
	}
}

// ask forwards the request.
func (p *Proxy) ask(call *Call, r *http.Request, body []byte) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.base.Scheme, p.base.Host, "", ""
	out.URL.Path = p.confine(call.Request, out.URL.Path)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	res, err := p.to.RoundTrip(out)
	if err == nil {
		p.note(func() { call.Server = res.StatusCode })
	}
	return res, err
}

// lose forwards the request and drops the response.
func (p *Proxy) lose(call *Call, r *http.Request, body []byte) {
	res, err := p.ask(call, r, body)
	if err == nil {
		_ = res.Body.Close() // a watch never ends
	}
}

func (p *Proxy) forward(w http.ResponseWriter, call *Call, r *http.Request, body []byte, f Fault) {
	res, err := p.ask(call, r, body)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			p.note(func() { call.Status = http.StatusBadGateway })
			answer(w, http.StatusBadGateway, "", statusOf(http.StatusBadGateway))
		}
		return
	}
	defer func() { _ = res.Body.Close() }() // read or abandoned
	for name, values := range res.Header {
		if !f.Torn || name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	if f.Conn == Draining {
		w.Header().Set("Connection", "close") // Go's server sends a GOAWAY
	}
	p.note(func() { call.Status = res.StatusCode })
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // a watch starts with its headers
	buffer := make([]byte, 256<<10)
	for piece := 0; ; piece++ {
		n, err := res.Body.Read(buffer)
		if f.Torn && n > 0 && piece >= f.TornAfter {
			_, _ = w.Write(buffer[:n/2]) // the response ends here anyway
			return
		}
		if n > 0 {
			if _, writeErr := w.Write(buffer[:n]); writeErr != nil {
				return
			}
			_ = flush.Flush() // the next write fails
		}
		if err != nil {
			return
		}
	}
}
