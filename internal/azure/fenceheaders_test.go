// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Endless headers, of a response, of 1xx responses or of trailers, end the request at the limit.
func TestHeadersWithoutEnd(t *testing.T) {
	for name, tt := range map[string]struct{ begin, unit, wantText string }{
		"of a response":        {"HTTP/1.1 200 OK\r\n", "a%x:\r\n", "exceeded 65536 bytes"},
		"of one header":        {"HTTP/1.1 200 OK\r\na: ", "%x", "exceeded 65536 bytes"},
		"of 1xx responses":     {"", "HTTP/1.1 103 Early Hints\r\na: %x\r\n\r\n", "exceeded 65536 bytes"},
		"of a trailer":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "a%x:\r\n", "long trailer"},
		"of a chunk extension": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "%x", "line too long"},
	} {
		t.Run(name, func(t *testing.T) {
			address := newEndlessServer(t, tt.begin, tt.unit)
			for _, method := range []string{http.MethodGet, http.MethodPut} { // each has a transport
				resp, err := get(t, method, "http://"+address)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if err == nil || !strings.Contains(err.Error(), tt.wantText) {
					t.Errorf("%s: %v, want %s", method, err, tt.wantText)
				}
			}
		})
	}
}

func TestHeadersWithoutEndOfHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 20_000 {
			w.Header().Set(fmt.Sprintf("A%x", i), "")
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		if resp, err := get(t, method, server.URL); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s: %s by %s with %d headers", method, resp.Status, resp.Proto, len(resp.Header))
		}
	}
}

func get(t *testing.T, method, url string) (*http.Response, error) {
	t.Helper()
	transport := newDefaultFencedTransport(nil)
	for _, each := range []*http.Transport{transport.ReadTransport, transport.WriteTransport} {
		each.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the server of a test
		t.Cleanup(each.CloseIdleConnections)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return transport.RoundTrip(req)
}

// newEndlessServer starts a server that sends begin, then unit forever, and returns its address.
func newEndlessServer(t *testing.T, begin, unit string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for line := ""; line != "\r\n"; {
					if line, err = r.ReadString('\n'); err != nil {
						return
					}
				}
				text := begin
				for i := 0; ; {
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
					var b strings.Builder
					for ; b.Len() < 4096; i++ {
						fmt.Fprintf(&b, unit, i)
					}
					text = b.String()
				}
			}()
		}
	}()
	return listener.Addr().String()
}
