// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

// maxFloodMiB limits the controller's memory growth under a flood of requests.
const maxFloodMiB = 64

// Clients that send endless headers use bounded memory and do not block probes from another
// address.
func TestAFloodOfHeaders(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	weir := l.controller("--leader-elect=false", "--metrics-secure")
	l.eventually("the start", func() error {
		_, err := get(weir.health, "/readyz")
		return err
	})
	other := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is the reader who has to be known
	}}
	probe := func(when, url string, want int) {
		t.Helper()
		for i := range 10 {
			resp, err := other.Get(url)
			if err != nil {
				t.Fatalf("%s, probe %d: %v", when, i, err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Fatalf("%s, probe %d: %s, want %d", when, i, resp.Status, want)
			}
		}
	}
	before := peakMiB(t, weir.ProcessID())
	for _, attack := range []struct {
		name        string
		connections int
		headers     string // start of each request, which never ends
	}{
		{"1 MB of tiny headers", 60, tinyHeaders(1 << 20)},
		{"as many headers as are read, on more connections than are served", 90, tinyHeaders(15 << 10)},
	} {
		held := flood(t, attack.connections, attack.headers, weir.health, weir.metrics)
		probe(attack.name, "http://"+weir.health+"/readyz", http.StatusOK)
		probe(attack.name, "https://"+weir.metrics+"/metrics", http.StatusUnauthorized)
		for _, c := range held {
			_ = c.Close()
		}
	}
	after := peakMiB(t, weir.ProcessID())
	t.Logf("peak memory: %d MiB, %d MiB before", after, before)
	if after-before > maxFloodMiB {
		t.Errorf("the flood raised the peak memory from %d to %d MiB, by more than %d", before, after, maxFloodMiB)
	}
}

// tinyHeaders returns n bytes of headers with different names.
func tinyHeaders(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strconv.FormatInt(int64(i), 36) + ":\r\n")
	}
	return b.String()
}

// flood opens connections to a plain and a TLS address, sends the headers, and returns once the
// server has read them or closed the connection.
func flood(t *testing.T, connections int, headers, plain, secure string) []net.Conn {
	t.Helper()
	var mu sync.Mutex
	var held []net.Conn
	var wg sync.WaitGroup
	for i := range 2 * connections {
		wg.Go(func() {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", []string{plain, secure}[i%2])
			if err != nil {
				return // the backlog is full
			}
			mu.Lock()
			held = append(held, c)
			mu.Unlock()
			if i%2 == 1 {
				s := tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // an attacker does not care
				if s.HandshakeContext(context.WithoutCancel(t.Context())) != nil {
					return // closed for a newer one
				}
				c = s
			}
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n"+headers) // or closed
		})
	}
	wg.Wait()
	return held
}

// peakMiB returns the peak memory of a process.
func peakMiB(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
