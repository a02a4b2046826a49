// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

func TestRefusalsBeforeAnyResource(t *testing.T) {
	emu := newCloud(t, armemu.Options{Token: "right"})
	ok := []string{"Authorization", "Bearer right"}
	cases := []struct {
		name, method, target string
		headers              []string
		status               int
		code                 string
	}{
		{"no token", http.MethodGet, poolID, []string{"Authorization", ""}, 401, "AuthenticationFailed"},
		{"another scheme", http.MethodGet, poolID, []string{"Authorization", "Basic right"}, 401, "AuthenticationFailed"},
		{"another token", http.MethodGet, poolID, []string{"Authorization", "Bearer wrong"}, 401, "InvalidAuthenticationToken"},
		{"no api-version", http.MethodGet, poolID + "?x=y", ok, 400, "MissingApiVersionParameter"},
		{"unknown api-version", http.MethodGet, poolID + "?api-version=1999-01-01", ok, 400, "NoRegisteredProviderFound"},
		{"unknown type", http.MethodGet, group + "/applicationGateways/x", ok, 404, "InvalidResourceType"},
		{"child without paths", http.MethodGet, lbID + "/probes/p", ok, 404, "InvalidResourceType"},
		{"another provider", http.MethodGet, "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/x", ok, 404, "InvalidResourceNamespace"},
		{"escaped slash", http.MethodGet, group + "/loadBalancers/kubernetes%2FbackendAddressPools%2Fweb", ok, 404, "NotFound"},
		{"admin API", http.MethodGet, "/_emu/snapshot", ok, 404, "NotFound"},
		{"method", http.MethodPost, lbID, ok, 405, "MethodNotAllowed"},
		{"PATCH of a child", http.MethodPatch, poolID, ok, 405, "MethodNotAllowed"},
		{"PATCH of what is missing", http.MethodPatch, group + "/loadBalancers/none", ok, 404, "ResourceNotFound"},
		{"load balancer missing", http.MethodGet, group + "/loadBalancers/none", ok, 404, "ResourceNotFound"},
		{"parent missing, PUT", http.MethodPut, group + "/loadBalancers/none/backendAddressPools/p", ok, 404, "ParentResourceNotFound"},
		{"parent missing, GET", http.MethodGet, group + "/loadBalancers/none/backendAddressPools/p", ok, 404, "ResourceNotFound"},
		{"parent missing, DELETE", http.MethodDelete, group + "/loadBalancers/none/backendAddressPools/p", ok, 404, "ResourceNotFound"},
		{"parent missing, LIST", http.MethodGet, group + "/loadBalancers/none/backendAddressPools", ok, 404, "ResourceNotFound"},
		{"pool missing", http.MethodGet, lbID + "/backendAddressPools/none", ok, 404, "NotFound"},
		{"operation missing", http.MethodGet, "/subscriptions/" + subscription + "/providers/Microsoft.Network/locations/eastus/operations/none", ok, 404, "NotFound"},
	}
	for _, c := range cases {
		if a := sendRequest(t, emu, c.method, c.target, "{}", c.headers...); a.status != c.status || a.errorCode() != c.code {
			t.Errorf("%s: got %d %s, want %d %s", c.name, a.status, a.raw, c.status, c.code)
		}
	}
	for _, c := range emu.Calls() {
		if strings.Contains(c.Path, "right") || strings.Contains(c.Path, "wrong") {
			t.Errorf("a token is in the log: %+v", c)
		}
	}
	if n := len(emu.Calls()); n != len(cases) {
		t.Errorf("the log has %d of %d calls", n, len(cases))
	}
}

func TestIdsIgnoreCase(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	a := sendRequest(t, emu, http.MethodPut, strings.ToUpper(poolID), poolBody("10.0.0.1"))
	if a.status != 200 || a.stringField("id") != poolID || a.stringField("name") != "web" {
		t.Errorf("%d %s", a.status, a.raw)
	}
}

func TestWriteTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		if a.status != 200 || a.provisioningState() != "Updating" || a.header.Get("Retry-After") != "10" {
			t.Fatalf("PUT: %d %s", a.status, a.raw)
		}
		async := a.header.Get("Azure-AsyncOperation")
		if p := sendRequest(t, emu, http.MethodGet, async, ""); p.stringField("status") != "InProgress" || p.header.Get("Retry-After") == "" {
			t.Errorf("first poll: %s", p.raw)
		}
		if g := sendRequest(t, emu, http.MethodGet, poolID, ""); g.provisioningState() != "Updating" || !strings.Contains(g.raw, "10.0.0.1") {
			t.Errorf("GET during the operation: %s", g.raw)
		}
		time.Sleep(5 * time.Minute)
		if p := sendRequest(t, emu, http.MethodGet, async, ""); p.stringField("status") != "Succeeded" || p.header.Get("Retry-After") != "" {
			t.Errorf("last poll: %s", p.raw)
		}
		if g := sendRequest(t, emu, http.MethodGet, poolID, ""); g.provisioningState() != "Succeeded" {
			t.Errorf("GET after the operation: %s", g.raw)
		}
	})
}

func TestThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Throttle: armemu.AzureLimits()})
		first := sendRequest(t, emu, http.MethodPut, poolID, poolBody())
		if got := first.header.Get("x-ms-ratelimit-remaining-subscription-writes"); got != "199" {
			t.Errorf("%q writes remain after one", got)
		}
		if got := first.header.Get("x-ms-ratelimit-remaining-subscription-global-writes"); got != "2999" {
			t.Errorf("%q writes of all callers remain after one", got)
		}
		for range 199 {
			sendRequest(t, emu, http.MethodPut, poolID, poolBody())
		}
		a := sendRequest(t, emu, http.MethodPut, poolID, poolBody())
		if a.status != 429 || a.errorCode() != "SubscriptionRequestsThrottled" || a.header.Get("Retry-After") != "1" {
			t.Fatalf("the 201st write at once: %d %s", a.status, a.raw)
		}
		if g := sendRequest(t, emu, http.MethodGet, poolID, ""); g.status != 200 || g.header.Get("x-ms-ratelimit-remaining-subscription-reads") != "249" {
			t.Errorf("reads have a bucket of their own: %d, %q remain", g.status, g.header.Get("x-ms-ratelimit-remaining-subscription-reads"))
		}
		other := sendRequest(t, emu, http.MethodPut, poolID, poolBody(), "Authorization", "Bearer another")
		if other.status != 200 {
			t.Errorf("another caller has a bucket of its own: %d", other.status)
		}
		time.Sleep(time.Second)
		for i := range 10 {
			if a := sendRequest(t, emu, http.MethodPut, poolID, poolBody()); a.status != 200 {
				t.Fatalf("write %d after a second: %d", i, a.status)
			}
		}
		if a := sendRequest(t, emu, http.MethodPut, poolID, poolBody()); a.status != 429 {
			t.Errorf("the 11th write after a second: %d", a.status)
		}
	})
}

// Fifteen times one caller's limit.
func TestGlobalThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Throttle: armemu.AzureLimits()})
		for i := range 3750 {
			a := sendRequest(t, emu, http.MethodGet, poolID, "", "Authorization", "Bearer caller-"+strconv.Itoa(i/200))
			if a.status != 200 {
				t.Fatalf("read %d: %d %s", i, a.status, a.raw)
			}
		}
		a := sendRequest(t, emu, http.MethodGet, poolID, "", "Authorization", "Bearer another")
		if a.status != 429 || a.errorCode() != "SubscriptionRequestsThrottled" || a.header.Get("x-ms-ratelimit-remaining-subscription-reads") != "250" ||
			a.header.Get("x-ms-ratelimit-remaining-subscription-global-reads") != "0" {
			t.Errorf("read 3751: %d %v %s", a.status, a.header, a.raw)
		}
	})
}

func TestComputeQuotas(t *testing.T) {
	emu := newCloud(t, armemu.Options{Throttle: armemu.AzureLimits()})
	set := strings.Replace(group, "Network", "Compute", 1) + "/virtualMachineScaleSets/set?api-version=2024-07-01"
	sendRequest(t, emu, http.MethodPut, set, `{"location":"eastus"}`)
	a := sendRequest(t, emu, http.MethodPut, set, `{"location":"eastus"}`)
	const want = "Microsoft.Compute/CreateVMScaleSet3Min;58,Microsoft.Compute/CreateVMScaleSet30Min;298"
	if got := a.header.Get("x-ms-ratelimit-remaining-resource"); got != want || a.header.Get("x-ms-request-charge") != "1" {
		t.Errorf("got %v, want %s", a.header, want)
	}
}

func TestNetworkWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Throttle: &armemu.Limits{NetworkWrites: 3, NetworkWindow: 5 * time.Minute}})
		for range 3 {
			sendRequest(t, emu, http.MethodPut, poolID, poolBody())
			time.Sleep(time.Second)
		}
		a := sendRequest(t, emu, http.MethodDelete, lbID+"/backendAddressPools/spare", "")
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != 429 || err != nil || wait != 297 || !strings.Contains(a.raw, "maxWriteOrDeleteCallsPer5Min") {
			t.Fatalf("the fourth write: %d, Retry-After %q", a.status, a.header.Get("Retry-After"))
		}
		time.Sleep(time.Duration(wait) * time.Second)
		if a := sendRequest(t, emu, http.MethodPut, poolID, poolBody()); a.status != 200 {
			t.Errorf("after Retry-After: %d", a.status)
		}
	})
}

// Before and during a delay.
func TestTransportHonoursTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{})
		setFaults(t, emu, `rules: [{match: {kind: put}, action: {delay: 1m}}]`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, err := trySend(ctx, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if got := poolIPs(t, emu, poolID); len(got) != 0 {
			t.Errorf("a request that ended while it was delayed wrote %v", got)
		}
		if _, err := trySend(ctx, emu, http.MethodGet, poolID, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that is over: %v", err)
		}
	})
}

func TestCallLog(t *testing.T) {
	emu := newCloud(t, armemu.Options{CallLogCap: 3})
	etag := sendRequest(t, emu, http.MethodGet, poolID, "").stringField("etag")
	a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"), "If-Match", etag, "x-ms-client-request-id", "mine")
	sendRequest(t, emu, http.MethodGet, a.header.Get("Azure-AsyncOperation"), "")
	calls := emu.Calls(armemu.ByKind(armemu.KindPut))
	if len(calls) != 1 {
		t.Fatalf("%d PUTs in the log", len(calls))
	}
	c := calls[0]
	if c.IfMatch != etag || c.EtagBefore != etag || c.EtagAfter != a.stringField("etag") || c.EtagAfter == etag ||
		c.Status != 200 || c.Resource != poolID || c.ClientRequestID != "mine" || c.Operation == "" {
		t.Errorf("%+v", c)
	}
	poll := emu.Calls(armemu.ByKind(armemu.KindPoll))
	if len(poll) != 1 || poll[0].Operation != c.Operation || poll[0].Resource != poolID {
		t.Errorf("polls: %+v", poll)
	}
	for range 10 {
		sendRequest(t, emu, http.MethodGet, lbID, "")
	}
	if got := emu.Calls(); len(got) != 3 || got[2].Seq != 13 {
		t.Errorf("a log of 3 holds %d, the newest is number %d", len(got), got[len(got)-1].Seq)
	}
	if s := emu.Stats(); s.Reads != 11 || s.Writes != 1 || s.Polls != 1 || s.Calls != 13 {
		t.Errorf("%+v", s)
	}
}
