// SPDX-License-Identifier: Apache-2.0

// Package httpserver creates HTTP servers with bounded memory: it limits connections, headers, bodies and
// their duration. All servers of shipped programs use it.
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
	// maxHeaderBytes limits the request line and headers. One MiB of tiny headers takes seven MiB of memory.
	maxHeaderBytes = 16 << 10
	// maxQueryBytes limits the query; parsing "a&a&…" takes a hundred times its length.
	maxQueryBytes = 2 << 10
	// headerTimeout also bounds the TLS handshake: net/http uses the shortest of its timeouts for it.
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	// maxConnections limits open connections.
	maxConnections = 64
)

// Options configure a server. Zero values of fields other than Handler are the strictest.
type Options struct {
	Handler http.Handler
	// TLS holds the certificate; nil means plain HTTP.
	TLS *tls.Config
	// MaxHeaderBytes defaults to 16 KiB.
	MaxHeaderBytes int
	// MaxBodyBytes limits how much of a body the handler can read.
	MaxBodyBytes int64
	// MaxConnections defaults to 64. Beyond it, the oldest connection of the address with the most is closed.
	MaxConnections int
	// WriteTimeout bounds the time from the end of the headers to the end of the response; 0 means 30 s.
	WriteTimeout time.Duration
	// IdleTimeout bounds keep-alive; 0 closes a connection after each response.
	IdleTimeout time.Duration
}

// Server is an HTTP server and its listener.
type Server struct {
	*http.Server

	Listener net.Listener
}

// Listen opens a TCP address. It accepts no connection before Serve.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	var l net.Listener = &limitedListener{Listener: tcp, table: newTable(cmp.Or(o.MaxConnections, maxConnections))}
	var onlyHTTP1 http.Protocols // HTTP/2 has concurrent requests per connection
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

// Serve serves until Shutdown or Close.
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

// serverErrors logs errors of the server itself, not those that clients can cause at will, such as failed
// handshakes.
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
