// SPDX-License-Identifier: Apache-2.0

package badlink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener is an in-process listener, for virtual time.
type pipeListener chan net.Conn

func (p pipeListener) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipeListener) Close() error { close(p); return nil }

func (p pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipeListener) dialPipe() net.Conn {
	near, in := net.Pipe()
	p <- in
	return near
}

// The server answers any input with this many bytes.
func startLink(t *testing.T, n Network, seed uint64, bytes int) (pipeListener, *Link) {
	t.Helper()
	w := make(pipeListener)
	l := newLink(w, func(context.Context) (net.Conn, error) {
		out, far := net.Pipe()
		go func() {
			defer func() { _ = far.Close() }()
			if _, err := far.Read(make([]byte, 1)); err == nil {
				_, _ = far.Write(make([]byte, bytes))
			}
		}()
		return out, nil
	}, n, seed)
	t.Cleanup(func() { _ = l.Close() })
	return w, l
}

func (p pipeListener) fetchBytes(t *testing.T) int64 {
	t.Helper()
	c := p.dialPipe()
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("?")); err != nil {
		return 0
	}
	n, _ := io.Copy(io.Discard, c)
	return n
}

// A change of speed affects existing connections.
func TestTheNetworkIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := startLink(t, Network{BytesPerSecond: 5000}, 1, 50_000)
		took := func(connections int) time.Duration {
			began, done := time.Now(), make(chan int64)
			for range connections {
				go func() { done <- w.fetchBytes(t) }()
			}
			for range connections {
				if n := <-done; n != 50_000 {
					t.Errorf("%d bytes arrived", n)
				}
			}
			return time.Since(began).Round(100 * time.Millisecond)
		}
		if single, two := took(1), took(2); single != 10*time.Second || two != 20*time.Second {
			t.Errorf("50 kB over 5 kB/s took %s, and twice side by side %s", single, two)
		}
		time.AfterFunc(5*time.Second, func() { l.SetNetwork(Network{BytesPerSecond: 50_000}) })
		if got := took(1); got < 5*time.Second || got > 6200*time.Millisecond {
			t.Errorf("half at 5 kB/s, half at 50 kB/s took %s", got)
		}
	})
}

// Repeatable by seed.
func TestTheNetworkResets(t *testing.T) {
	plays := func(percent int, seed uint64) (broken string) {
		synctest.Test(t, func(t *testing.T) {
			w, l := startLink(t, Network{BytesPerSecond: MaxBandwidth, ResetPercent: percent}, seed, 20_000)
			for i := range 400 {
				switch n := w.fetchBytes(t); {
				case n > maxBytesBeforeReset && n != 20_000:
					t.Fatalf("broken after %d bytes", n)
				case n < 20_000:
					broken += fmt.Sprint(i, " ")
				}
			}
			f := l.Counters()
			if f.Connections != 400 || f.Rejected != 0 || f.Reset != strings.Count(broken, " ") {
				t.Errorf("%+v, and %s broke", f, broken)
			}
		})
		return broken
	}
	first, second, other := plays(30, 1), plays(30, 1), plays(30, 2)
	if n := strings.Count(first, " "); n < 90 || n > 150 {
		t.Errorf("%d of 400 were broken off, of 30 percent", n)
	}
	if first != second || first == other {
		t.Error("the seed does not decide which")
	}
	if none, all := plays(0, 1), plays(100, 1); none != "" || strings.Count(all, " ") != 400 {
		t.Errorf("of 0 percent %q were broken off, of 100 %q", none, all)
	}
}

func TestTheNetworkIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := startLink(t, Network{BytesPerSecond: 5000}, 1, 50_000)
		time.AfterFunc(5*time.Second, func() { l.SetNetwork(Network{Down: true, BytesPerSecond: 5000}) })
		if n := w.fetchBytes(t); n < 20_000 || n > 25_000 {
			t.Errorf("%d bytes came in five seconds at 5 kB/s", n)
		}
		if n := w.fetchBytes(t); n != 0 {
			t.Errorf("%d bytes came over a network that is away", n)
		}
		l.SetNetwork(Network{BytesPerSecond: 5000})
		if n := w.fetchBytes(t); n != 50_000 {
			t.Errorf("%d bytes came when it was back", n)
		}
		if f := l.Counters(); f.Connections != 3 || f.Rejected != 1 || f.Reset != 1 {
			t.Errorf("%+v", f)
		}
	})
}

// A reset, not an end of stream.
func TestOverTCP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	defer server.Close()
	l, err := StartLink(t.Context(), server.Listener.Addr().String(), Network{BytesPerSecond: 100_000}, 1)
	if err != nil {
		t.Fatal(err)
	}
	asks := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr(), nil)
		if err != nil {
			return "", err
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	if got, err := asks(); got != "here" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	there, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = there.Close() }()
	answer := bufio.NewReader(there)
	if _, err := io.WriteString(there, "GET / HTTP/1.1\r\nHost: there\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(answer, nil); err != nil {
		t.Fatal(err)
	} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	l.SetNetwork(Network{Down: true, BytesPerSecond: 100_000})
	if _, err := answer.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("who is connected hears %v", err)
	}
	if _, err := asks(); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("away: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := asks(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed: %v", err)
	}
	if _, err := StartLink(t.Context(), "127.0.0.1:1", Network{}, 1); err == nil || !strings.Contains(err.Error(), "bytesPerSecond 0") {
		t.Errorf("a network that carries nothing: %v", err)
	}
}

func TestAdmin(t *testing.T) {
	l, err := StartLink(t.Context(), "127.0.0.1:1", Network{BytesPerSecond: 5000, ResetPercent: 30}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var received []Network
	admin := l.Admin(func(n Network) { received = append(received, n) })
	asks := func(method, body string) (int, string) {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", bytes.NewReader([]byte(body))))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, row := range []struct {
		method, body string
		code         int
		wantText     string
	}{
		{"GET", "", 200, `{"away":false,"bytesPerSecond":5000,"resetPercent":30,"connections":0,"refused":0,"reset":0,"bytes":0}`},
		{"PATCH", `{"away":true}`, 200, `{"away":true,"bytesPerSecond":5000,"resetPercent":30,`},
		{"PATCH", `{"bytesPerSecond":1000,"resetPercent":0}`, 200, `{"away":true,"bytesPerSecond":1000,"resetPercent":0,`},
		{"PATCH", `{"gone":true}`, 400, `unknown field "gone": give JSON with "away"`},
		{"PATCH", `away`, 400, `give JSON with "away"`},
		{"PATCH", `{"bytesPerSecond":1}`, 400, "bytesPerSecond 1: give 100 to"},
		{"PATCH", `{"resetPercent":101}`, 400, "resetPercent 101: give 0 to 100"},
		{"GET", "", 200, `{"away":true,"bytesPerSecond":1000,"resetPercent":0,`},
		{"DELETE", "", 405, ""},
	} {
		if code, want := asks(row.method, row.body); code != row.code || !strings.Contains(want, row.wantText) {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.body, code, want, row.code, row.wantText)
		}
	}
	if want := []Network{{true, 5000, 30}, {true, 1000, 0}}; fmt.Sprint(received) != fmt.Sprint(want) {
		t.Errorf("heard %v", received)
	}
}
