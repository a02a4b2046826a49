// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/operator"
)

// What is kept is shown, the newest last, for whom and with Azure's id of it.
func TestCallsAreShown(t *testing.T) {
	log := calls.New(1 << 20)
	at := time.Date(2026, 11, 23, 3, 14, 15, 0, time.UTC)
	const balancer = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes"
	log.Add(calls.Call{At: at, Took: 81 * time.Millisecond, Op: "get", Resource: balancer, Status: 200, RequestID: "6f1c"})
	log.Add(calls.Call{At: at.Add(time.Second), Took: 2 * time.Second, Op: "put", Resource: balancer + "/backendAddressPools/shop-web", Status: 429, RequestID: "77aa",
		Causes: []calls.Cause{{Kind: "BackendPool", Namespace: "shop", Name: "web.kubernetes"}}})
	log.Add(calls.Call{At: at.Add(2 * time.Second), Took: time.Minute, Op: "token"})
	server := httptest.NewServer(operator.Handler(log))
	defer server.Close()
	show := func(o CallsOptions) string {
		t.Helper()
		var out bytes.Buffer
		o.Server, o.Out = server.URL, &out
		if err := Calls(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := `TIME          OPERATION  STATUS     TOOK  RESOURCE                                                   FOR                             REQUEST ID
03:14:15.000  get        200        81ms  loadBalancers/kubernetes                                   -                               6f1c
03:14:16.000  put        429        2s    loadBalancers/kubernetes/backendAddressPools/shop-web      BackendPool shop/web.kubernetes  77aa
03:14:17.000  token      no answer  1m0s  -                                                          -                               -
`
	if got := show(CallsOptions{}); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s", got)
	}
	if got := show(CallsOptions{Pool: "shop/web.kubernetes", JSON: true}); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"requestID":"77aa"`) {
		t.Errorf("of a BackendPool: %s", got)
	}
	if got := show(CallsOptions{Failed: true, Resource: "SHOP-WEB"}); strings.Count(got, "\n") != 2 {
		t.Errorf("failed, of a pool: %s", got)
	}
	if got := show(CallsOptions{Service: "shop/web"}); !strings.Contains(got, "is it the one that answers") {
		t.Errorf("of a Service: %s", got)
	}
}

func TestCallsThatCannotBeAskedFor(t *testing.T) {
	for _, tt := range []struct {
		o    CallsOptions
		says string
	}{
		{CallsOptions{Service: "web"}, `--service "web": want NAMESPACE/NAME`},
		{CallsOptions{Pool: "shop/"}, `--pool "shop/": want NAMESPACE/NAME`},
		{CallsOptions{Service: "a/b", Pool: "a/b"}, "want one of them"},
		{CallsOptions{Since: -time.Second}, "--since -1s"},
		{CallsOptions{Server: "127.0.0.1:8082"}, `--server "127.0.0.1:8082"`},
	} {
		err := Calls(t.Context(), tt.o)
		if _, usage := errors.AsType[*UsageError](err); !usage || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
	if err := Calls(t.Context(), CallsOptions{Server: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "port-forward") {
		t.Errorf("nobody answers: %v", err)
	}
}
