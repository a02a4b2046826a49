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

	mu         sync.Mutex
	rules      []*ruleState
	calls      []*Call
	confinedTo string
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
	below.ServeListener(func(l net.Listener) { _ = p.server.ServeTLS(l, "", "") }) // returns when l is closed
	return p, nil
}

// ClientConfig returns a client configuration for the proxy.
func (p *Proxy) ClientConfig() *rest.Config {
	return &rest.Config{Host: "https://" + p.Address, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}}
}

// Close stops the proxy and all running requests.
func (p *Proxy) Close() {
	p.Network.Close()    // first: the server cannot close silent connections
	_ = p.server.Close() // nothing to save
}

// ConfineTo restricts lists and watches of all namespaces to one namespace, so that several
// controllers can share a kube-apiserver.
func (p *Proxy) ConfineTo(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.confinedTo = namespace
}

func (p *Proxy) confinedPath(r Request, path string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.confinedTo == "" || r.Namespace != "" || r.Name != "" || !isNamespaced[r.Resource] || r.Verb != "list" && r.Verb != "watch" {
		return path
	}
	return strings.TrimSuffix(path, r.Resource) + "namespaces/" + p.confinedTo + "/" + r.Resource
}

var isNamespaced = map[string]bool{"backendpools": true, "endpointslices": true, "services": true}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	call := p.recordCall(r, body)
	f := p.nextFault(call.Request)
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.Connection == ResetConn || f.Connection == CloseConn || f.Connection == GoAwayConn:
		if f.AfterServer {
			p.dropResponse(call, r, body)
		}
		if c, ok := r.Context().Value(connKey{}).(*tls.Conn); ok {
			breakConn(c, f.Connection)
		}
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.AfterServer {
			p.dropResponse(call, r, body)
		}
		p.recordStatus(func() { call.Status = f.Status })
		writeStatus(w, f.Status, f.RetryAfter, newStatus(f.Status))
	case f.ExpireWatch:
		p.recordStatus(func() { call.Status = http.StatusOK })
		writeStatus(w, http.StatusOK, "", isExpired())
	default:
		p.forwardResponse(w, call, r, body, f)
	}
}

func (p *Proxy) sendRequest(call *Call, r *http.Request, body []byte) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.base.Scheme, p.base.Host, "", ""
	out.URL.Path = p.confinedPath(call.Request, out.URL.Path)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		out.Body = http.NoBody
	}
	res, err := p.to.RoundTrip(out)
	if err == nil {
		p.recordStatus(func() { call.ServerStatus = res.StatusCode })
	}
	return res, err
}

// dropResponse forwards the request and drops the response.
func (p *Proxy) dropResponse(call *Call, r *http.Request, body []byte) {
	res, err := p.sendRequest(call, r, body)
	if err == nil {
		_ = res.Body.Close() // a watch never ends
	}
}

func (p *Proxy) forwardResponse(w http.ResponseWriter, call *Call, r *http.Request, body []byte, f Fault) {
	res, err := p.sendRequest(call, r, body)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			p.recordStatus(func() { call.Status = http.StatusBadGateway })
			writeStatus(w, http.StatusBadGateway, "", newStatus(http.StatusBadGateway))
		}
		return
	}
	defer func() { _ = res.Body.Close() }() // read or abandoned
	for name, values := range res.Header {
		if !f.Truncate || name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	if f.Connection == DrainConn {
		w.Header().Set("Connection", "close") // Go's server sends a GOAWAY
	}
	p.recordStatus(func() { call.Status = res.StatusCode })
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // a watch starts with its headers
	buffer := make([]byte, 256<<10)
	for piece := 0; ; piece++ {
		n, err := res.Body.Read(buffer)
		if f.Truncate && n > 0 && piece >= f.TruncateAfter {
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
