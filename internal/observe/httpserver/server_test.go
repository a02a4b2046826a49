// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func serve(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout = time.Hour, time.Hour, time.Hour // TestEveryLimitIsSet checks them
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// exchange sends a text and returns the status of the response.
func exchange(t *testing.T, c net.Conn, text string) int {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	_, _ = w.Write(body)
})

// The strictest limits are the default.
func TestEveryLimitIsSet(t *testing.T) {
	strict, err := Listen(t.Context(), "127.0.0.1:0", Options{Handler: echo})
	if err != nil {
		t.Fatal(err)
	}
	_ = strict.Listener.Close()
	for name, ok := range map[string]bool{
		"header bytes":    strict.MaxHeaderBytes == 16<<10,
		"header timeout":  strict.ReadHeaderTimeout > 0 && strict.ReadHeaderTimeout <= 5*time.Second,
		"read timeout":    strict.ReadTimeout > 0 && strict.ReadTimeout <= 10*time.Second,
		"write timeout":   strict.WriteTimeout > 0 && strict.WriteTimeout <= 30*time.Second,
		"connections":     strict.Listener.(*limitedListener).table.max == 64,
		"only HTTP/1":     strict.Protocols.HTTP1() && !strict.Protocols.HTTP2() && !strict.Protocols.UnencryptedHTTP2(),
		"no default mux":  strict.Handler != nil,
		"errors filtered": strict.ErrorLog != nil,
	} {
		if !ok {
			t.Errorf("%s: not as wanted", name)
		}
	}
}

func TestRequestsBeyondALimit(t *testing.T) {
	s := serve(t, Options{Handler: echo, MaxBodyBytes: 100})
	chunked := "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"a request":                   {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"headers near the limit":      {"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 15<<10) + "\r\n\r\n", 200},
		"headers beyond it":           {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a:\r\n", 8<<10), 431},
		"a long path":                 {"GET /" + strings.Repeat("a", 21<<10), 431},
		"a long query":                {"GET /?" + strings.Repeat("a&", 2<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
		"a body":                      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 200},
		"a body beyond the limit":     {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n" + strings.Repeat("a", 101), 413},
		"a chunk beyond the limit":    {chunked + "65\r\n" + strings.Repeat("a", 101), 413},
		"a long chunk extension":      {chunked + "1;" + strings.Repeat("a", 8<<10), 413},
		"a long trailer":              {chunked + "1\r\na\r\n0\r\n" + strings.Repeat("a:\r\n", 8<<10), 413},
		"two lengths":                 {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", 400},
		"an upgrade to HTTP/2":        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 200},
		"a length that cannot be had": {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n" + strings.Repeat("a", 101), 413},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exchange(t, dial(t, s), tt.text); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

// Without an idle timeout, only the first of several pipelined requests gets a response.
func TestPipelinedRequests(t *testing.T) {
	s := serve(t, Options{Handler: echo})
	c := dial(t, s)
	if _, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 50)); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(c)
	if n := strings.Count(string(raw), "HTTP/1.1 "); n != 1 {
		t.Errorf("%d responses (%v), want 1", n, err)
	}
}

// A client with all connections cannot block others; its oldest connections are closed.
func TestAFloodKeepsNoOtherClientOut(t *testing.T) {
	s := serve(t, Options{Handler: echo, MaxConnections: 4})
	flood := make([]net.Conn, 20)
	for i := range flood {
		flood[i] = dial(t, s)
		if _, err := io.WriteString(flood[i], "GET / HTTP/1.1\r\nHost: x\r\na:\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return other.DialContext(ctx, network, s.Listener.Addr().String())
	}}}
	for i := range 10 {
		resp, err := client.Get("http://weir/")
		if err != nil {
			t.Fatalf("probe %d: %v", i, err)
		}
		_ = resp.Body.Close()
	}
	for i, c := range flood[:len(flood)-4] {
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("connection %d: %v, want it closed", i, err)
		}
	}
}

func TestASecureServer(t *testing.T) {
	certificate, err := SelfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{Handler: echo, TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	for _, tt := range []struct {
		config   *tls.Config
		wantText string
	}{
		{&tls.Config{NextProtos: []string{"h2", "http/1.1"}}, ""},
		{&tls.Config{NextProtos: []string{"h2"}}, "no application protocol"},
		{&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "protocol version"},
	} {
		tt.config.InsecureSkipVerify = true
		c := tls.Client(dial(t, s), tt.config)
		switch err := c.HandshakeContext(t.Context()); {
		case tt.wantText != "":
			if err == nil || !strings.Contains(err.Error(), tt.wantText) {
				t.Errorf("%v: %v, want %s", tt.config.NextProtos, err, tt.wantText)
			}
		case err != nil:
			t.Error(err)
		default:
			if got := exchange(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); got != 200 || c.ConnectionState().NegotiatedProtocol != "http/1.1" {
				t.Errorf("%d by %q", got, c.ConnectionState().NegotiatedProtocol)
			}
		}
	}
	if err := certificateOf(t, s).VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
}

func certificateOf(t *testing.T, s *Server) interface{ VerifyHostname(string) error } {
	t.Helper()
	c := tls.Client(dial(t, s), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is looked at
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.ConnectionState().PeerCertificates[0]
}

// Clients cannot fill the log.
func TestErrorsOfClientsAreNotLogged(t *testing.T) {
	for line, logged := range map[string]bool{
		"http: TLS handshake error from 10.0.0.1:1: EOF":                  false,
		"http: URL query contains semicolon, which is no longer":          false,
		"2026/01/01 00:00:00 http: panic serving 10.0.0.1:1: nil pointer": true,
	} {
		if got := isLogged([]byte(line)); got != logged {
			t.Errorf("%s: logged is %v", line, got)
		}
	}
}

func TestAnAddressThatIsTaken(t *testing.T) {
	s := serve(t, Options{Handler: echo})
	if _, err := Listen(t.Context(), s.Listener.Addr().String(), Options{Handler: echo}); err == nil {
		t.Error(fmt.Sprint(s.Listener.Addr(), " is listened on twice"))
	}
}
