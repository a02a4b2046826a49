// SPDX-License-Identifier: Apache-2.0

// Package httpserver makes HTTP servers with bounded memory: it limits connections, headers, bodies, and the time
// that each of them may take. Every server of a shipped program is made here.
package httpserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// maxHeaderBytes bounds a request line and its headers. One MiB of tiny headers takes seven MiB of memory.
	maxHeaderBytes = 16 << 10
	// maxQueryBytes bounds what a handler parses: "a&a&…" takes a hundred times its length.
	maxQueryBytes = 2 << 10
	// headerTimeout also bounds a TLS handshake: net/http uses the shortest of its timeouts for it.
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	// maxConnections bounds the connections that are open at the same time.
	maxConnections = 64
)

// Options configure a server. The zero value of each field but Handler is the strictest.
type Options struct {
	Handler http.Handler
	// TLS holds the certificate; nil serves plain HTTP.
	TLS *tls.Config
	// MaxHeaderBytes is 16 KiB if it is 0.
	MaxHeaderBytes int
	// MaxBodyBytes bounds what the handler reads of a body; with 0 it reads none.
	MaxBodyBytes int64
	// MaxConnections is 64 if it is 0. One more connection closes the oldest of the address that has the most.
	MaxConnections int
	// WriteTimeout bounds the time from the end of the headers to the end of the response; 0 is 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection waits for its next request; 0 closes it after each response.
	IdleTimeout time.Duration
}

// Server is an HTTP server and the listener to serve.
type Server struct {
	*http.Server

	Listener net.Listener
}

// Listen opens a TCP address. Nothing is accepted before Serve.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	var l net.Listener = &limitedListener{Listener: tcp, table: newTable(cmp.Or(o.MaxConnections, maxConnections))}
	var onlyHTTP1 http.Protocols // a connection of HTTP/2 carries many requests at the same time
	onlyHTTP1.SetHTTP1(true)
	s := &http.Server{
		Handler: limitQuery(http.MaxBytesHandler(o.Handler, o.MaxBodyBytes)), MaxHeaderBytes: cmp.Or(o.MaxHeaderBytes, maxHeaderBytes),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: cmp.Or(o.WriteTimeout, writeTimeout), IdleTimeout: o.IdleTimeout,
		Protocols: &onlyHTTP1, ErrorLog: log.New(serverErrors{}, "", log.LstdFlags),
	}
	s.SetKeepAlivesEnabled(o.IdleTimeout > 0)
	if o.TLS != nil {
		secure := o.TLS.Clone()
		secure.MinVersion, secure.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
		l = tls.NewListener(l, secure)
	}
	return &Server{s, l}, nil
}

// Serve answers requests until Shutdown or Close.
func (s *Server) Serve() error { return s.Server.Serve(s.Listener) }

func limitQuery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQueryBytes {
			http.Error(w, http.StatusText(http.StatusRequestURITooLong), http.StatusRequestURITooLong)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serverErrors logs errors of the server itself. Clients cause the others, such as failed handshakes, as often as
// they want.
type serverErrors struct{}

// Write implements io.Writer.
func (serverErrors) Write(line []byte) (int, error) {
	if isLogged(line) {
		return os.Stderr.Write(line)
	}
	return len(line), nil
}

func isLogged(line []byte) bool {
	return bytes.Contains(line, []byte("http: panic serving")) || bytes.Contains(line, []byte("http: Accept error"))
}
