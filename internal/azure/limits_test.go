// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
)

// hostileResponses are responses that are small on the wire and large, slow or endless when decoded.
func hostileResponses() map[string]func(w io.Writer) {
	repeat := func(head, unit string, bytes int, tail string) func(io.Writer) {
		return func(w io.Writer) {
			many := strings.Repeat(unit, 1+(1<<16)/len(unit))
			_, _ = io.WriteString(w, head)
			for written := 0; written < bytes; written += len(many) {
				_, _ = io.WriteString(w, many)
			}
			_, _ = io.WriteString(w, tail)
		}
	}
	const balancer = `{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes","properties":{`
	return map[string]func(io.Writer){
		"a text that is too long":             repeat(`{"value":"`, " ", 400<<20, `"}`),
		"empty objects":                       repeat(`{"value":[`, "{},", 60<<20, `{}]}`),
		"empty parts":                         repeat(balancer+`"frontendIPConfigurations":[`, "{},", 60<<20, `{}]}}`),
		"parts that hold parts":               repeat(balancer+`"loadBalancingRules":[`, `{"properties":{}},`, 60<<20, `{}]}}`),
		"empty words":                         repeat(balancer+`"zones":[`, `"",`, 60<<20, `""]}}`),
		"one word of as much as may be":       repeat(balancer+`"provisioningState":"`, "x", 60<<20, `"}}`),
		"a deep one":                          repeat("", `{"properties":{"subnet":`, 20<<20, ""),
		"a long word behind many layers":      repeat(strings.Repeat(`{"properties":{"frontendIPConfigurations":[{"properties":{"publicIPAddress":`, 8), `x`, 60<<20, strings.Repeat("}}]}}", 8)),
		"an error with details without end":   repeat(`{"error":{"code":"C","details":[`, `{},`, 60<<20, `{}]}}`),
		"an error with words for many events": repeat(`{"error":{"code":"C","message":"`, `words `, 60<<20, `"}}`),
	}
}

// For any response the heap stays below 512 MiB, nothing is retried, and the error names the limit.
func TestHostileResponsesAreRejected(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for name, write := range hostileResponses() {
		t.Run(name, func(t *testing.T) {
			var wire bytes.Buffer
			zipped, _ := gzip.NewWriterLevel(&wire, gzip.BestSpeed)
			write(zipped)
			_ = zipped.Close()
			var requested atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requested.Add(1)
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(name, "an error") {
					w.WriteHeader(http.StatusBadRequest)
				}
				_, _ = w.Write(wire.Bytes())
			}))
			defer server.Close()
			endpoint, credential, err := LocalEndpoint(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			client, err := New(Options{Endpoint: endpoint, Credential: credential})
			if err != nil {
				t.Fatal(err)
			}
			defer http.DefaultClient.CloseIdleConnections()
			calls := map[string]func() error{
				"get":  func() error { _, err := client.GetLoadBalancer(t.Context(), kubernetes); return err },
				"list": func() error { _, err := client.ListLoadBalancers(t.Context(), "s1", "rg"); return err },
			}
			for subject, call := range calls {
				requested.Store(0)
				var got error
				peak := heapDuring(func() { got = call() })
				if peak > 512<<20 {
					t.Errorf("%s: the heap grew to %d MiB for %d KiB on the wire", subject, peak>>20, wire.Len()>>10)
				}
				f := armerror.FromError(got)
				if got == nil && strings.HasPrefix(name, "one word") { // the requested resource
					continue
				}
				if f == nil || f.Class != armerror.Terminal && f.Code != armerror.CodeOutcomeUnknown || requested.Load() != 1 || !strings.Contains(got.Error(), "load balancer") {
					t.Errorf("%s: asked %d times; %v", subject, requested.Load(), got)
				}
			}
		})
	}
}

// heapDuring returns the largest heap during do, including garbage.
func heapDuring(do func()) (peak uint64) {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := func() {
		metrics.Read(sample)
		peak = max(peak, sample[0].Value.Uint64())
	}
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-done:
				look()
				return
			case <-time.After(time.Millisecond):
				look()
			}
		}
	})
	do()
	close(done)
	looking.Wait()
	return peak
}

// The end of an operation has status 200 and a message of any length.
func TestALongMessageIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("client_secret = words ", 1<<20)
		wire := &fakeARM{answer: replySequence(accepted, newReply(200, `{"status":"Failed","error":{"code":"Bad","message":"`+long+`"}}`))}
		_, err := newClient(t, wire).PutPool(t.Context(), readPool(t))
		if f := armerror.FromError(err); f.Code != "Bad" || !f.OperationFailed || len(err.Error()) > 2000 {
			t.Errorf("got %s of %d bytes", f.Code, len(err.Error()))
		}
	})
}

// A list ends whatever the next links are.
func TestAListEnds(t *testing.T) {
	const here = "https://management.azure.com/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers?api-version=2025-05-01"
	tests := map[string]struct {
		next  func(n int, requested string) string
		want  string
		calls int
	}{
		"to itself":            {func(_ int, requested string) string { return requested }, "page 2 of the list links to a page that was read before", 1},
		"in a circle":          {func(n int, _ string) string { return fmt.Sprint(here, "&page=", n%3) }, "page 5 of the list links to a page that was read before", 4},
		"for ever":             {func(n int, _ string) string { return fmt.Sprint(here, "&page=", n) }, "the list has more than 1000 pages", 1000},
		"to something else":    {func(int, string) string { return strings.Replace(here, "/rg/", "/other/", 1) }, "another path: /subscriptions/s1/resourcegroups/other/", 1},
		"to somewhere else":    {func(int, string) string { return "https://example.com/subscriptions" }, "refusing to send a token to example.com", 1},
		"to a host's own door": {func(int, string) string { return "http://127.0.0.1/" }, "refusing to send a token to 127.0.0.1", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wire := &fakeARM{answer: func(n int, r *http.Request) reply {
				return newReply(200, `{"value":[],"nextLink":"`+tt.next(n, r.URL.String())+`"}`)
			}}
			_, err := newClient(t, wire).ListLoadBalancers(t.Context(), "s1", "rg")
			if f := armerror.FromError(err); f == nil || f.Class != armerror.Terminal || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "list load balancers of resource group rg: ") {
				t.Errorf("got %v", err)
			}
			if n := wire.count(""); n != tt.calls {
				t.Errorf("%d requests, want %d", n, tt.calls)
			}
		})
	}
}

// A finite list is read to its end.
func TestALongListIsRead(t *testing.T) {
	wire := &fakeARM{answer: func(n int, r *http.Request) reply {
		next := fmt.Sprintf(`,"nextLink":"https://management.azure.com%s?api-version=2025-05-01&$skiptoken=%d"`, strings.ToUpper(r.URL.Path), n)
		if n == 40 {
			next = ""
		}
		return newReply(200, fmt.Sprintf(`{"value":[{"id":"/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/b%d","properties":{}}]%s}`, n, next))
	}}
	loadBalancers, err := newClient(t, wire).ListLoadBalancers(t.Context(), "s1", "rg")
	if err != nil || len(loadBalancers) != 40 {
		t.Errorf("%d load balancers, %v", len(loadBalancers), err)
	}
}
