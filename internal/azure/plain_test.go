// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

var (
	nicOfN1  = Resource{ID: plainID(lb.TypeNetworkInterface, "n1")}
	plainGot = reply{status: 200, body: `{"id":"` + pathPlaceholder + `","properties":{"provisioningState":"Succeeded"}}`}
	// throttledByCompute is the compute provider's 429 as publicly reported.
	throttledByCompute = reply{status: 429, header: map[string]string{"Retry-After": "600"}, body: errorBody("OperationNotAllowed",
		"The server rejected the request because too many requests have been received for this subscription.", "TooManyRequests", `{"operationGroup":"HighCostGetVMScaleSet30Min"}`)}
)

// queryRecorder records the queries of requests.
type queryRecorder struct {
	*fakeARM
	queries []string
}

func (q *queryRecorder) Do(req *http.Request) (*http.Response, error) {
	q.queries = append(q.queries, req.URL.Query().Get("api-version"))
	return q.fakeARM.Do(req)
}

// asRead returns the origin of a resource that was read.
func asRead(r Resource) *any {
	return new(any(codec.Document{Version: (&Client{}).resourceVersion(r.asTarget()), Text: json.RawMessage(`{}`)}))
}

// bodyOf returns a fixed body.
func bodyOf(body any) func() (any, error) {
	return func() (any, error) { return body, nil }
}

// A write is guarded by its etag, an action is not; api-versions are those of the SDK and of
// Compute, also for the final GET.
func TestPlainWrites(t *testing.T) {
	for _, tt := range []struct {
		name, method, version, body string
		call                        func(context.Context, *Client) error
	}{
		{"an interface", "PUT", networkAPIVersion, `{"a":1}`, func(ctx context.Context, c *Client) error {
			_, err := c.WriteResource(ctx, nicOfN1, http.MethodPut, asRead(nicOfN1), `W/"e"`, bodyOf(map[string]int{"a": 1}))
			return err
		}},
		{"a model", "PATCH", computeAPIVersion, `{"a":1}`, func(ctx context.Context, c *Client) error {
			_, err := c.WriteResource(ctx, blueSet, http.MethodPatch, asRead(blueSet), `"1"`, bodyOf(map[string]int{"a": 1}))
			return err
		}},
		{"an instance", "PUT", computeAPIVersion, `{"a":1}`, func(ctx context.Context, c *Client) error {
			_, err := c.WriteResource(ctx, blueInstance, http.MethodPut, asRead(blueInstance), `"1"`, bodyOf(map[string]int{"a": 1}))
			return err
		}},
		{"an upgrade", "POST", computeAPIVersion, `{"instanceIds":["0","12"]}`, func(ctx context.Context, c *Client) error {
			return c.UpgradeInstances(ctx, blueSet.ID, []string{"0", "12"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taken := reply{status: 200, header: accepted.header, body: strings.Replace(plainGot.body, "Succeeded", "Updating", 1)}
				if tt.method == http.MethodPost {
					taken = reply{status: 202, header: map[string]string{"Azure-AsyncOperation": operation, "Location": operation + "&l=1"}}
				}
				wire := &queryRecorder{fakeARM: &fakeARM{answer: replySequence(taken, working, done, plainGot)}}
				client := newClient(t, wire.fakeARM, func(o *Options) { o.Transport = wire })
				if err := tt.call(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				first := wire.calls[0]
				if first.method != tt.method || first.body != tt.body || wire.queries[0] != tt.version {
					t.Errorf("sent %s %s at version %s", first.method, first.body, wire.queries[0])
				}
				guarded := first.header.Get("If-Match") != ""
				if guarded == (tt.method == http.MethodPost) || first.header.Get("If-None-Match") != "" {
					t.Errorf("guarded: %v, %v", guarded, first.header)
				}
				want := 4 // the result of a write is read again
				if tt.method == http.MethodPost {
					want = 3
				}
				if len(wire.calls) != want {
					t.Fatalf("%d requests, want %d", len(wire.calls), want)
				}
				for _, call := range wire.calls[1:] {
					if call.header.Get("If-Match") != "" {
						t.Error("a poll is guarded")
					}
				}
				if last := wire.queries[3%want]; want == 4 && last != tt.version {
					t.Errorf("the result is read at version %s", last)
				}
			})
		})
	}
}

// Plain requests use the SDK's api-version.
func TestPlainVersionIsTheSDKs(t *testing.T) {
	wire := &queryRecorder{fakeARM: &fakeARM{answer: replySequence(shown)}}
	_, _ = newClient(t, wire.fakeARM, func(o *Options) { o.Transport = wire }).GetPool(t.Context(), webPool)
	if len(wire.queries) != 1 || wire.queries[0] != networkAPIVersion {
		t.Errorf("the SDK asks at %v", wire.queries)
	}
}

// Requests that are rejected before they are sent.
func TestPlainRefusals(t *testing.T) {
	wire := &fakeARM{answer: replySequence(plainGot)}
	client, ctx := newClient(t, wire), t.Context()
	write := func(r Resource, method, etag string) error {
		_, err := client.WriteResource(ctx, r, method, asRead(r), etag, bodyOf(struct{}{}))
		return err
	}
	wantFault(t, write(nicOfN1, http.MethodPut, ""), armerror.Terminal, codeNoEtag)
	wantFault(t, write(nicOfN1, http.MethodGet, "e"), armerror.Terminal, codeInvalidID)
	wantFault(t, write(Resource{ID: plainID(lb.TypeNetworkInterface, "../x")}, http.MethodPut, "e"), armerror.Terminal, codeInvalidID)
	for _, child := range []string{"virtualMachines/", "virtualMachines/..", "virtualMachines/1?x", "deallocate", "virtualMachines/1/reimage"} {
		wantFault(t, write(Resource{ID: blueSet.ID, Child: child}, http.MethodPut, "e"), armerror.Terminal, codeInvalidID)
	}
	for _, id := range []string{"*", "", "1a"} {
		wantFault(t, client.UpgradeInstances(ctx, blueSet.ID, []string{"1", id}), armerror.Terminal, codeInvalidID)
	}
	wantFault(t, client.UpgradeInstances(ctx, nicOfN1.ID, []string{"1"}), armerror.Terminal, codeInvalidID)
	_, err := client.ListResources(ctx, Resource{ID: lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "a/b", Type: lb.TypeScaleSet}})
	wantFault(t, err, armerror.Terminal, codeInvalidID)
	if n := wire.count(""); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A list has all pages with valid items, or fails.
func TestPlainLists(t *testing.T) {
	all := Resource{ID: blueSet.ID, Child: "virtualMachines"}
	item := func(id string) string { return `{"id":"` + id + `"}` }
	page := func(next string, items ...string) reply {
		return reply{status: 200, body: `{"value":[` + strings.Join(items, ",") + `]` + next + `}`}
	}
	next := `,"nextLink":"https://management.azure.com` + all.armPath() + `?api-version=2024-07-01&$skiptoken=2"`
	for _, tt := range []struct {
		name    string
		answers []reply
		want    int // -1 for a rejection
	}{
		{"two pages", []reply{page(next, item(all.armPath()+"/0"), item(strings.ToUpper(all.armPath())+"/1")), page("", item(all.armPath()+"/2"))}, 3},
		{"none", []reply{page("")}, 0},
		{"another scale set's", []reply{page("", item(all.armPath()+"/0"), item("/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/red/virtualMachines/1"))}, -1},
		{"no list", []reply{{status: 200, body: `{}`}}, -1},
		{"null", []reply{page("", "null")}, -1},
		{"the second page is not to be had", []reply{page(next, item(all.armPath()+"/0")), {status: 403}}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := newClient(t, &fakeARM{answer: replySequence(tt.answers...)}).ListResources(t.Context(), all)
			if (err != nil) != (tt.want < 0) || err == nil && len(got) != tt.want {
				t.Errorf("%d, %v", len(got), err)
			}
		})
	}
}

// A 429 of the compute provider closes only the subscription's Compute gate for reads or for
// writes.
func TestGatesClosedByComputeThrottling(t *testing.T) {
	type request func(context.Context, *Client) error
	read := func(r Resource) request {
		return func(ctx context.Context, c *Client) error { _, err := c.ReadResource(ctx, r); return err }
	}
	write := func(r Resource) request {
		return func(ctx context.Context, c *Client) error {
			_, err := c.WriteResource(ctx, r, http.MethodPut, asRead(r), "e", bodyOf(struct{}{}))
			return err
		}
	}
	red, elsewhere := Resource{ID: plainID(lb.TypeScaleSet, "red")}, blueSet
	elsewhere.ID.SubscriptionID = "s2"
	for _, tt := range []struct {
		name   string
		first  request
		probe  request
		closed bool
	}{
		{"reads of another scale set", read(blueSet), read(red), true},
		{"reads of an instance", read(blueSet), read(blueInstance), true},
		{"writes after a read", read(blueSet), write(blueInstance), false},
		{"writes after a write", write(blueInstance), write(red), true},
		{"reads of interfaces", read(blueSet), read(nicOfN1), false},
		{"another subscription", read(blueSet), read(elsewhere), false},
		{"of an interface the same word closes nothing", read(nicOfN1), read(blueSet), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &fakeARM{answer: replySequence(throttledByCompute, plainGot)}
				client := newClient(t, wire)
				wantFault(t, tt.first(t.Context(), client), armerror.Retriable, "TooManyRequests")
				err := tt.probe(t.Context(), client)
				if closed := wire.count("") == 1; closed != tt.closed || (err != nil) != closed {
					t.Errorf("closed %v, %v", closed, err)
				}
				if tt.closed {
					wantFault(t, err, armerror.Retriable, armerror.CodeGateClosed)
				}
				time.Sleep(601 * time.Second)
				if err := tt.probe(t.Context(), client); err != nil {
					t.Errorf("later: %v", err)
				}
			})
		})
	}
}

// A scale set waits for the Compute gates; interfaces and load balancers only for the
// subscription's, each with its own turn.
func TestEnterResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, &fakeARM{answer: replySequence(throttledByCompute, reply{status: 429, header: map[string]string{"Retry-After": "30"}, body: subBody})})
		_, _ = client.ReadResource(t.Context(), blueSet)
		until, reason := client.EnterResource(blueSet.ID)
		if want := time.Now().Add(600 * time.Second); !until.Equal(want) || reason != "the subscription's reads in Microsoft.Compute are closed until "+want.UTC().Format(time.RFC3339)+" after 429 TooManyRequests" {
			t.Errorf("scale set until %v: %s", until, reason)
		}
		if until, _ := client.EnterResource(nicOfN1.ID); !until.IsZero() {
			t.Errorf("interface until %v", until)
		}
		if until, _ := client.Enter(kubernetes); !until.IsZero() {
			t.Errorf("load balancer until %v", until)
		}
		_, _ = client.WriteResource(t.Context(), nicOfN1, http.MethodPut, asRead(nicOfN1), "e", bodyOf(struct{}{}))
		closed := time.Now().Add(30 * time.Second)
		if until, message := client.EnterResource(nicOfN1.ID); !until.Equal(closed) || message == "" {
			t.Errorf("interface until %v: %s", until, message)
		}
		time.Sleep(30 * time.Second)
		var turns []time.Time
		for n := range 3 {
			until, _ := client.EnterResource(plainID(lb.TypeNetworkInterface, fmt.Sprint("n", n)))
			turns = append(turns, until)
		}
		if !turns[0].IsZero() || turns[1].IsZero() || !turns[2].After(turns[1]) {
			t.Errorf("turns at %v", turns)
		}
	})
}

// Microsoft.Compute writes do not count toward Microsoft.Network's window.
func TestWritesInComputeAreNotCounted(t *testing.T) {
	writes := ratelimit.New(0.5, 30*time.Second)
	client := newClient(t, &fakeARM{answer: replySequence(plainGot)}, func(o *Options) { o.Writes = writes })
	for _, r := range []Resource{nicOfN1, blueSet, blueInstance} {
		_, _ = client.WriteResource(t.Context(), r, http.MethodPut, asRead(r), "e", bodyOf(struct{}{}))
	}
	_ = client.UpgradeInstances(t.Context(), blueSet.ID, []string{"1"})
	if figures := writes.ListUsage(time.Now()); len(figures) != 1 || figures[0].Used != 1 {
		t.Errorf("got %+v", figures)
	}
}

// Without leadership, neither writes nor actions are sent.
func TestPlainWritesAreFenced(t *testing.T) {
	wire := &fakeARM{answer: replySequence(plainGot)}
	fence, current := newLeader()
	client := newClient(t, wire, fencedBy(fence))
	*current = time.Minute
	_, err := client.WriteResource(t.Context(), blueSet, http.MethodPatch, asRead(blueSet), "e", bodyOf(struct{}{}))
	wantFault(t, err, armerror.Shutdown, armerror.CodeShutdown)
	wantFault(t, client.UpgradeInstances(t.Context(), blueSet.ID, []string{"1"}), armerror.Shutdown, armerror.CodeShutdown)
	if n := wire.count(""); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Messages and stale faults.
func TestPlainMessages(t *testing.T) {
	conflict := newReply(409, errorBody("Conflict", "The request failed due to conflict with a concurrent request."))
	missing := newReply(404, errorBody("NotFound", "The entity was not found in this Azure location."))
	noSet := newReply(404, errorBody("ResourceNotFound", "The Resource 'Microsoft.Compute/virtualMachineScaleSets/blue' under resource group 'rg' was not found."))
	get := func(r Resource) func(*Client) error {
		return func(c *Client) error { _, err := c.ReadResource(t.Context(), r); return err }
	}
	list := func(r Resource) func(*Client) error {
		return func(c *Client) error { _, err := c.ListResources(t.Context(), r); return err }
	}
	upgrade := func(c *Client) error { return c.UpgradeInstances(t.Context(), blueSet.ID, []string{"1"}) }
	const text = ": 409 Conflict: The request failed due to conflict with a concurrent request."
	for _, tt := range []struct {
		call   func(*Client) error
		answer reply
		class  armerror.Class
		want   string
	}{
		{get(nicOfN1), conflict, armerror.Retriable, "read network interface n1" + text},
		{get(blueSet), conflict, armerror.Retriable, "read scale set blue" + text},
		{get(blueInstance), conflict, armerror.Retriable, "read instance 3 of scale set blue" + text},
		{list(Resource{ID: blueSet.ID, Child: "virtualMachines"}), conflict, armerror.Retriable, "list instances of scale set blue" + text},
		{list(Resource{ID: plainID(lb.TypeScaleSet, "")}), conflict, armerror.Retriable, "list scale sets of resource group rg" + text},
		{upgrade, conflict, armerror.Retriable, "upgrade instances of scale set blue" + text},
		{get(blueInstance), missing, armerror.Stale, "read instance 3 of scale set blue: 404 NotFound: The entity was not found in this Azure location."},
		{get(blueInstance), noSet, armerror.Stale, "read instance 3 of scale set blue: 404 ResourceNotFound: The Resource 'Microsoft.Compute/virtualMachineScaleSets/blue' under resource group 'rg' was not found."},
		{upgrade, missing, armerror.Terminal, "upgrade instances of scale set blue: 404 NotFound: The entity was not found in this Azure location."},
		{upgrade, noSet, armerror.Stale, "upgrade instances of scale set blue: 404 ResourceNotFound: The Resource 'Microsoft.Compute/virtualMachineScaleSets/blue' under resource group 'rg' was not found."},
	} {
		f := armerror.FromError(tt.call(newClient(t, &fakeARM{answer: replySequence(tt.answer)})))
		if f == nil || f.Class != tt.class || f.Error() != tt.want {
			t.Errorf("got  %v\nwant %s %s", f, tt.class, tt.want)
		}
	}
}
