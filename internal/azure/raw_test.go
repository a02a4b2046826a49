// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
)

const rawPool = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/shop-web"

func newRaw(t *testing.T, c *fakeARM) *RawClient {
	t.Helper()
	raw, err := newClient(t, c).NewRawClient()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func rawPut() RawRequest {
	return RawRequest{Method: http.MethodPut, Path: rawPool, Version: "2025-05-01", IfMatch: "e1", Body: RawObject{"properties": RawObject{}}}
}

// A request is sent as given and the response returned as is; an HTTP error is no error.
func TestRawSendsWhatItIsGiven(t *testing.T) {
	c := &fakeARM{answer: replySequence(reply{status: 412, body: errorBody("PreconditionFailed", "Precondition failed.", "Mismatch", "Bearer "+testToken+" is late.")})}
	a, err := newRaw(t, c).Send(t.Context(), rawPut())
	if err != nil || a.Status != 412 || strings.Join(a.Codes, " ") != "PreconditionFailed Mismatch" || a.Operation != nil {
		t.Errorf("got %+v, %v", a, err)
	}
	if strings.Contains(a.Message, testToken) || !strings.Contains(a.Message, "is late.") {
		t.Errorf("it says %q", a.Message)
	}
	sent := c.calls[0]
	if sent.path != rawPool || sent.header.Get("If-Match") != "e1" || sent.header.Get("If-None-Match") != "" || sent.body != `{"properties":{}}` || sent.op != opPut {
		t.Errorf("sent %+v", sent)
	}
	if _, err := newRaw(t, c).Send(t.Context(), RawRequest{Method: http.MethodPost, Path: rawPool}); err == nil || c.count("") != 1 {
		t.Errorf("a POST: %v, %d calls", err, c.count(""))
	}
	link := RawRequest{Method: http.MethodGet, Path: "/subscriptions/s1/resourceGroups", Link: "https://example.org/next"}
	if _, err := newRaw(t, c).Send(t.Context(), link); err == nil || !strings.Contains(err.Error(), "refusing to send a token to example.org") || c.count("") != 1 {
		t.Errorf("a link to somewhere else: %v, %d calls", err, c.count(""))
	}
}

// A Retry-After delays the next request of any kind.
func TestRawWaitsWhereItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeARM{answer: replySequence(reply{status: 429, body: lockBody, header: map[string]string{"Retry-After": "11"}}, shown)}
		raw := newRaw(t, c)
		began := time.Now()
		a, err := raw.Send(t.Context(), rawPut())
		if err != nil || a.Status != 429 || a.Wait != 11*time.Second || time.Since(began) != 0 {
			t.Fatalf("got %+v, %v", a, err)
		}
		balancer, _, _ := strings.Cut(rawPool, "/backendAddressPools")
		if a, err = raw.Send(t.Context(), RawRequest{Method: http.MethodGet, Path: balancer, Version: "2025-05-01"}); err != nil || a.Status != 200 {
			t.Fatalf("got %+v, %v", a, err)
		}
		if waited := time.Since(began); waited < 11*time.Second || waited > 12*time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// The result of a write and its times.
func TestRawFollows(t *testing.T) {
	canceled := reply{status: 200, body: `{"status":"Canceled","error":{"code":"Canceled","message":"Gone.","details":[{"code":"CanceledAndSupersededDueToAnotherOperation","message":"By another."}]}}`}
	broken := reply{status: 200, body: `{"status":"Failed","error":{"code":"InternalServerError","message":"No."}}`}
	for _, tt := range []struct {
		name          string
		replies       []reply
		state, codes  string
		running, over time.Duration // since the response; running is 0 if never seen
	}{
		{"at once", []reply{shown}, "Succeeded", "", 0, 0},
		{"at the third poll", []reply{accepted, working, working, done, shown}, "Succeeded", "", 2 * pollInterval, 3 * pollInterval},
		{"overtaken", []reply{accepted, canceled}, "Canceled", "Canceled CanceledAndSupersededDueToAnotherOperation", 0, pollInterval},
		{"failed", []reply{accepted, working, broken}, "Failed", "InternalServerError", pollInterval, 2 * pollInterval},
	} {
		synctest.Test(t, func(t *testing.T) {
			raw := newRaw(t, &fakeARM{answer: replySequence(tt.replies...)})
			a, err := raw.Send(t.Context(), rawPut())
			if err != nil {
				t.Fatal(err)
			}
			end, err := raw.Follow(t.Context(), a)
			if err != nil || end.State != tt.state || strings.Join(end.Codes, " ") != tt.codes || end.FinishedAt.Sub(a.At) != tt.over {
				t.Errorf("%s: got %+v, %v, %s after the answer", tt.name, end, err, end.FinishedAt.Sub(a.At))
			}
			if tt.running == 0 && !end.RunningAt.IsZero() || tt.running > 0 && end.RunningAt.Sub(a.At) != tt.running {
				t.Errorf("%s: last seen under way %s after the answer", tt.name, end.RunningAt.Sub(a.At))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		raw := newRaw(t, &fakeARM{answer: replySequence(accepted, reply{err: errors.New("connection reset")})})
		a, err := raw.Send(t.Context(), rawPut())
		if err != nil {
			t.Fatal(err)
		}
		if end, err := raw.Follow(t.Context(), a); err == nil {
			t.Errorf("a poll that is never answered: %+v", end)
		}
		if _, err := raw.Follow(t.Context(), RawResponse{}); err == nil {
			t.Error("nothing was begun, and it ended")
		}
	})
}

func TestTargetOf(t *testing.T) {
	group := "/subscriptions/s1/resourceGroups/rg"
	for path, want := range map[string]string{
		rawPool: "pool kubernetes/shop-web", group: "resource group rg",
		group + "/providers/Microsoft.Network/loadBalancers/kubernetes": "load balancer kubernetes",
		group + "/providers/Microsoft.Compute/virtualMachines/vm":       "virtual machine vm",
		group + "/providers/Microsoft.Network/virtualNetworks/v":        "virtual network v",
	} {
		got := parseTarget(path)
		if got.String() != want || got.id.SubscriptionID != "s1" || got.id.ResourceGroup != "rg" {
			t.Errorf("%s: got %s, %+v", path, got, got.id)
		}
	}
	if id, ok := parseTarget(rawPool).loadBalancer(); !ok || id != (lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"}) {
		t.Errorf("its load balancer is %v", id)
	}
	for path, want := range map[string]string{
		"/subscriptions/s1/locations":                                                                                        "locations of subscription s1",
		"/subscriptions/s1/providers/Microsoft.Network/locations/eastus/usages":                                              "usages of subscription s1",
		group + "/providers/Microsoft.Authorization/permissions":                                                             "permissions of resource group rg",
		group + "/providers/Microsoft.Network/loadBalancers/a/providers/Microsoft.Authorization/permissions":                 "permissions of load balancer a",
		group + "/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes/providers/Microsoft.Authorization/permissions": "permissions of virtual network v",
	} {
		if got := parseTarget(path); got.String() != want || got.armID() != path {
			t.Errorf("%s: %s, %s", path, got, got.armID())
		}
	}
	if got := parseTarget("/subscriptions/s1/resourceGroups"); got.id.SubscriptionID != "s1" {
		t.Errorf("a list: %+v", got)
	}
}
