// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/requestlog"
)

// Logged calls are printed newest last, with the object and Azure's request ID.
func TestCallsAreShown(t *testing.T) {
	log := requestlog.New(1 << 20)
	at := time.Date(2026, 11, 23, 3, 14, 15, 0, time.UTC)
	const balancer = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes"
	log.Add(requestlog.Call{At: at, Took: 81 * time.Millisecond, Op: "get", Resource: balancer, Status: 200, RequestID: "6f1c"})
	log.Add(requestlog.Call{At: at.Add(time.Second), Took: 2 * time.Second, Op: "put", Resource: balancer + "/backendAddressPools/shop-web", Status: 429, RequestID: "77aa",
		Causes: []requestlog.Cause{{Kind: "BackendPool", Namespace: "shop", Name: "web.kubernetes"}}})
	log.Add(requestlog.Call{At: at.Add(2 * time.Second), Took: time.Minute, Op: "token"})
	server := httptest.NewServer(requestlog.NewHandler(log))
	defer server.Close()
	show := func(o CallsOptions) string {
		t.Helper()
		var out bytes.Buffer
		o.Connection.Server, o.Out = server.URL, &out
		if err := PrintCalls(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for width, want := range map[int]string{0: `TIME          OP     STATUS     TOOK  RESOURCE                  FOR                       REQUEST ID
03:14:15.000  get    200        81ms  load balancer kubernetes  -
03:14:16.000  put    429        2s    pool kubernetes/shop-web  pool shop/web.kubernetes  77aa
03:14:17.000  token  no answer  1m0s  -                         -                         -
`, 80: `TIME          OP     STATUS     TOOK  RESOURCE          FOR               REQUEST ID
03:14:15.000  get    200        81ms  load …kubernetes  -
03:14:16.000  put    429        2s    pool …s/shop-web  pool …kubernetes  77aa
03:14:17.000  token  no answer  1m0s  -                 -                 -
`} {
		if got := show(CallsOptions{Width: width}); got != want {
			t.Errorf("width %d: got\n%s", width, got)
		}
	}
	if got := show(CallsOptions{Pool: "shop/web.kubernetes", JSON: true}); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"requestID":"77aa"`) {
		t.Errorf("of a BackendPool: %s", got)
	}
	if got := show(CallsOptions{Failed: true, Resource: "SHOP-WEB"}); strings.Count(got, "\n") != 2 {
		t.Errorf("failed, of a pool: %s", got)
	}
	if got := show(CallsOptions{Service: "shop/web"}); !strings.Contains(got, "check that it is the leader") {
		t.Errorf("of a Service: %s", got)
	}
}

func TestResourcesOfCalls(t *testing.T) {
	for id, want := range map[string]string{
		"loadBalancers/lb":                             "load balancer lb",
		"loadBalancers/lb/backendAddressPools/web":     "pool lb/web",
		"publicIPAddresses":                            "publicIPAddresses",
		"publicIPAddresses/ip":                         "public IP ip",
		"virtualMachineScaleSets/s/virtualMachines/0":  "machine s/0",
		"virtualMachineScaleSets/s/networkInterfaces":  "virtualMachineScaleSets/s/networkInterfaces",
		"networkSecurityGroups/nsg/securityRules/rule": "networkSecurityGroups/nsg/securityRules/rule",
	} {
		if got := describeResource("/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/" + id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if got := describeResource("/subscriptions/s/locations"); got != "locations" {
		t.Errorf("got %q", got)
	}
}

func TestInvalidCallRequests(t *testing.T) {
	for _, tt := range []struct {
		o        CallsOptions
		wantText string
	}{
		{CallsOptions{Service: "web"}, `--service "web": want NAMESPACE/NAME`},
		{CallsOptions{Pool: "shop/"}, `--pool "shop/": want NAMESPACE/NAME`},
		{CallsOptions{Service: "a/b", Pool: "a/b"}, "want one of them"},
		{CallsOptions{Since: -time.Second}, "--since -1s"},
		{CallsOptions{Connection: Connection{Server: "127.0.0.1:8082"}}, `--operator-url "127.0.0.1:8082"`},
	} {
		err := PrintCalls(t.Context(), tt.o)
		if _, usage := errors.AsType[*UsageError](err); !usage || !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	if err := PrintCalls(t.Context(), CallsOptions{Connection: Connection{Server: "http://127.0.0.1:1"}}); err == nil || !strings.Contains(err.Error(), "refused; without --operator-url") {
		t.Errorf("nobody answers: %v", err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if err := PrintCalls(t.Context(), CallsOptions{Connection: Connection{Server: other.URL}}); err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "is it a Weir's") {
		t.Errorf("another client answers: %v", err)
	}
}

// An endpoint that accepts connections but never responds fails within five seconds, locally or through the
// API server.
func TestCallsOfASilentLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _, _ string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			context.AfterFunc(t.Context(), func() { _ = there.Close() })
			return here, nil
		}
		noWay := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"leader": silent, "way": noWay} {
			began := time.Now()
			err := PrintCalls(t.Context(), CallsOptions{Connection: Connection{Server: LeaderServer, Dial: dial}})
			if elapsed := time.Since(began); err == nil || !strings.Contains(err.Error(), "no answer within 15s; check that the API server") || elapsed > 16*time.Second {
				t.Errorf("%s: after %s: %v", name, elapsed, err)
			}
		}
	})
}

// The call log uses less than 8 MiB, and a full log adds calls without allocations.
func TestKeptCallsAreBounded(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	log := requestlog.New(maxCallLogBytes)
	next := 0
	call := func() requestlog.Call {
		next++
		return requestlog.Call{
			At: time.Now(), Op: "put", Status: 200, Resource: strings.Clone("/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/shop-web"),
			RequestID: fmt.Sprintf("%036d", next), CorrelationID: fmt.Sprintf("%036d", next), Causes: []requestlog.Cause{{Kind: "BackendPool", Namespace: "shop", Name: "web"}},
		}
	}
	for range 40_000 {
		log.Add(call())
	}
	kept := heap() - before
	t.Logf("%d calls in %d KiB", len(log.Select(requestlog.Filter{})), kept>>10)
	if kept > 8<<20 {
		t.Errorf("%d bytes", kept)
	}
	single := call()
	if n := testing.AllocsPerRun(1000, func() { log.Add(single) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
