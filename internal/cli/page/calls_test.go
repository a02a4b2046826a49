// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/requestlog"
)

// The last calls are shown newest first, with their objects and Azure's throttling.
func TestCalls(t *testing.T) {
	log, now := requestlog.New(4<<20), time.Now()
	const balancer = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes"
	log.Add(requestlog.Call{At: now.Add(-2 * time.Hour), Op: "get", Resource: balancer, Status: 200, RequestID: "too-old"})
	for i := range 250 {
		log.Add(requestlog.Call{At: now.Add(-10 * time.Minute), Op: "get", Resource: balancer, Status: 200, RequestID: fmt.Sprint("r", i)})
	}
	log.Add(requestlog.Call{At: now.Add(-time.Minute), Took: 1500 * time.Millisecond, Op: "put", Resource: balancer + "/backendAddressPools/<b>", Status: 429, RequestID: "id-429",
		Causes: []requestlog.Cause{{Kind: "BackendPool", Namespace: "shop", Name: "web"}, {Kind: "Service", Namespace: "shop", Name: "<i>"}}})
	log.Add(requestlog.Call{At: now, Op: "token"})
	weir := httptest.NewServer(requestlog.NewHandler(log))
	defer weir.Close()
	ask := asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: weir.URL}})
	for _, tt := range []struct{ path, has, hasNot string }{
		{"/calls", "252 requests, 1 throttled (429), 1 failed otherwise|at most 250 in 15s|no answer|1.5s|loadBalancers/kubernetes/backendAddressPools/&lt;b&gt;|id-429|/KEY/pool/shop/web\"|" +
			"service/shop/%3Ci%3E|rel=\"next\"|RetryAfter|class=\"throttled\"|1 of 2", "too-old"},
		{"/calls?page=2", "2 of 2|r0<", "id-429"},
		{"/calls?since=6h&page=2", "253 requests|too-old", ""},
		{"/calls?since=nonsense", "252 requests", ""},
		{"/calls?failed=true", "2 requests, 1 throttled (429), 1 failed otherwise, of those that failed", "r249"},
		{"/calls?cause=BackendPool%2Fshop%2Fweb", "1 request, 1 throttled|id-429", "r249"},
		{"/calls?cause=BackendPool%2Fshop%2Fother", "0 requests|is it the one that answers", "<tbody><"},
		{"/pool/shop/web", "/KEY/calls?cause=BackendPool%2Fshop%2Fweb", ""},
	} {
		status, body := ask(tt.path)
		if status != 200 {
			t.Errorf("%s: %d", tt.path, status)
		}
		for _, have := range strings.Split(tt.has, "|") {
			if !strings.Contains(body, have) {
				t.Errorf("%s: %q is not in\n%.3000s", tt.path, have, body)
			}
		}
		if tt.hasNot != "" && strings.Contains(body, tt.hasNot) {
			t.Errorf("%s: %q is in it", tt.path, tt.hasNot)
		}
	}
	for range maxListedCalls {
		log.Add(requestlog.Call{At: now, Op: "get", Resource: balancer, Status: 200, RequestID: "many"})
	}
	if _, body := asks(t, Options{API: server(shop()...), Connection: app.Connection{Server: weir.URL}})("/calls?since=1h"); !strings.Contains(body, "The newest 5000 of 5252") || !strings.Contains(body, "5252 requests") {
		t.Errorf("%.3000s", body)
	}
	_, body := ask("/calls")
	if strings.Index(body, "no answer") > strings.Index(body, "id-429") {
		t.Error("the newest is not the first")
	}
	if status, _ := ask("/calls?cause=nonsense"); status != 502 {
		t.Error(status)
	}
}

// If the leader cannot be reached, the rest of the page works and shows how to reach it.
func TestCallsWithoutLeader(t *testing.T) {
	broken := httptest.NewServer(nil)
	broken.Close()
	for _, server := range []string{"http://127.0.0.1:1", broken.URL} {
		ask := asks(t, Options{API: nil, Connection: app.Connection{Server: server}})
		if status, body := ask("/calls"); status != 502 || !strings.Contains(body, "reached through the API server") {
			t.Errorf("%d\n%s", status, body)
		}
	}
}
