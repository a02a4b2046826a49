// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

func TestSupersededWriteSurfacesAsCanceledWithStatus200(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 1})
		pools := newClients(t, emu.Transport(), "http://emulator.test").NewLoadBalancerBackendAddressPoolsClient()
		first, err := pools.BeginCreateOrUpdate(t.Context(), "rg", "kubernetes", "web", ipPool(address("a", "10.0.0.1")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2")); a.status != http.StatusOK {
			t.Fatal(a.raw)
		}
		_, err = first.PollUntilDone(t.Context(), nil)
		wantError(t, err, http.StatusOK, "Canceled")
		if err == nil || !strings.Contains(err.Error(), "CanceledAndSupersededDueToAnotherOperation") {
			t.Errorf("the error does not say what happened: %v", err)
		}
		if got := poolIPs(t, emu, poolID); len(got) != 1 {
			t.Errorf("supersede keeps what the earlier write put into another pool; it holds %v", got)
		}
	})
}

func TestSupersedeDiscardTakesTheEarlierWriteBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 1, Behavior: behavior.Behavior{Overlap: behavior.SupersedeDiscard}})
		spare := lbID + "/backendAddressPools/spare"
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		sendRequest(t, emu, http.MethodPut, spare, poolBody("10.0.0.2"))
		if got := poolIPs(t, emu, poolID); len(got) != 0 {
			t.Errorf("the superseded write left %v", got)
		}
		if got := poolIPs(t, emu, spare); len(got) != 1 {
			t.Errorf("the later write left %v", got)
		}
	})
}

func TestSupersedeDiscardLateTakesTheEarlierWriteBackAtItsEnd(t *testing.T) {
	for _, second := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{LatencyScale: 1, LatencyFixed: true, Behavior: behavior.Behavior{Overlap: behavior.SupersedeDiscardLate}})
			first := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
			sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2"))
			time.Sleep(2 * time.Second)
			rest := sendRequest(t, emu, http.MethodGet, lbID, "")
			if got := poolIPs(t, emu, poolID); len(got) != 1 || !strings.Contains(rest.raw, "Succeeded") || strings.Contains(rest.raw, "Updating") {
				t.Errorf("at rest it holds %v: %s", got, rest.raw)
			}
			if a := sendRequest(t, emu, http.MethodGet, first.header.Get("Azure-AsyncOperation"), ""); a.stringField("status") != "InProgress" {
				t.Errorf("the operation that was overtaken: %s", a.raw)
			}
			want := 0
			if second {
				sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
				want = 1
			}
			time.Sleep(time.Minute)
			if a := sendRequest(t, emu, http.MethodGet, first.header.Get("Azure-AsyncOperation"), ""); a.stringField("status") != "Canceled" {
				t.Errorf("in the end: %s", a.raw)
			}
			if got := poolIPs(t, emu, poolID); len(got) != want {
				t.Errorf("written again: %t, it holds %v in the end", second, got)
			}
			if etag := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag"); !second && etag == rest.stringField("etag") {
				t.Error("the etag stays")
			}
		})
	}
}

func TestSupersededOperationNamesItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		first := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		second := sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2"))
		a := sendRequest(t, emu, http.MethodGet, first.header.Get("Azure-AsyncOperation"), "")
		by := a.header.Get("Canceled-By-Azure-AsyncOperation")
		if a.status != 200 || a.stringField("status") != "Canceled" || by != second.header.Get("Azure-AsyncOperation") {
			t.Errorf("%d, by %q, not %q: %s", a.status, by, second.header.Get("Azure-AsyncOperation"), a.raw)
		}
		if won := sendRequest(t, emu, http.MethodGet, by, ""); won.stringField("status") != "InProgress" || won.header.Get("Canceled-By-Azure-AsyncOperation") != "" {
			t.Errorf("the successor: %s", won.raw)
		}
	})
}

func TestLockRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Seed: 2, LatencyScale: 1, Latency: armemu.Busy, Behavior: behavior.Behavior{Overlap: behavior.Lock}})
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		for range 5 {
			a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.2"))
			requested := a.header.Get("Retry-After")
			if a.status != 429 || requested == "" || !strings.Contains(a.raw, "The call can be retried in "+requested+" seconds.") {
				t.Errorf("%d, Retry-After %q: %s", a.status, requested, a.raw)
			}
			time.Sleep(1500 * time.Millisecond)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, pips+"a", lb("Standard", static)))
		a := sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(publicFrontend("fe", "a")))
		expectRejected(t, a, 429, "ReferencedResourceNotProvisioned")
		if requested := a.header.Get("Retry-After"); requested != "" || !strings.Contains(a.raw, "PutPublicIpAddressOperation") {
			t.Errorf("Retry-After %q: %s", requested, a.raw)
		}
	})
}

// Repeatable by seed.
func TestMixedOverlap(t *testing.T) {
	answers := func(seed uint64) (all string) {
		synctest.Test(t, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{Seed: seed, LatencyScale: 1, LatencyFixed: true, Behavior: behavior.Behavior{Overlap: behavior.Mixed}})
			for i := range 60 {
				all += fmt.Sprint(sendRequest(t, emu, http.MethodPut, poolID, poolBody(fmt.Sprintf("10.0.0.%d", i+1))).status, " ")
			}
		})
		return all
	}
	single := answers(1)
	for _, status := range []string{"200", "429", "409"} {
		if n := strings.Count(single, status); n < 10 {
			t.Errorf("%d of 60 writes are answered %s: %s", n, status, single)
		}
	}
	if single != answers(1) || single == answers(2) {
		t.Error("the answers do not come from the seed")
	}
}

func TestOverlapRefusals(t *testing.T) {
	cases := []struct {
		name    string
		opts    armemu.Options
		status  int
		code    string
		detail  string
		retries bool
	}{
		{"lock-429", armemu.Options{Behavior: behavior.Behavior{Overlap: behavior.Lock}}, 429, "RetryableError", "RetryableErrorDueToAnotherOperation", true},
		{"conflict-409", armemu.Options{Behavior: behavior.Behavior{Overlap: behavior.Conflict}}, 409, "AnotherOperationInProgress", "/operations/", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.opts.LatencyScale = 1
				emu := newCloud(t, c.opts)
				sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
				a := sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2"))
				if a.status != c.status || a.errorCode() != c.code || !strings.Contains(a.raw, c.detail) {
					t.Errorf("got %d %s", a.status, a.raw)
				}
				if ok := a.header.Get("Retry-After") != ""; ok != c.retries {
					t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
				}
				time.Sleep(5 * time.Minute) // longer than any operation with this seed
				if a := sendRequest(t, emu, http.MethodPut, lbID+"/backendAddressPools/spare", poolBody("10.0.0.2")); a.status != 200 {
					t.Errorf("after the operation ended: %s", a.raw)
				}
			})
		})
	}
}

func TestEtagIsTheAggregates(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	before := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag")
	if pool := sendRequest(t, emu, http.MethodGet, poolID, "").stringField("etag"); pool != before {
		t.Errorf("pool %s, load balancer %s", pool, before)
	}
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	after := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag")
	if after == before {
		t.Error("a write of a pool left the load balancer's etag")
	}
	a := sendRequest(t, emu, http.MethodPut, lbID, lbBody(`{"name":"web"}`), "If-Match", before)
	if a.status != 412 || a.errorCode() != "PreconditionFailed" || !strings.Contains(a.raw, "PreconditionFailedEtagMismatch") {
		t.Errorf("a stale If-Match: %d %s", a.status, a.raw)
	}
	if now := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag"); now != after {
		t.Error("a refused write changed the etag")
	}
}

func TestPreconditions(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	etag := sendRequest(t, emu, http.MethodGet, poolID, "").stringField("etag")
	absent := lbID + "/backendAddressPools/absent"
	cases := []struct {
		name, method, id, header, value string
		want                            int
	}{
		{"* on what exists", http.MethodPut, poolID, "If-Match", "*", 200},
		{"* on what does not", http.MethodPut, absent, "If-Match", "*", 412},
		{"an etag on what does not", http.MethodPut, absent, "If-Match", etag, 412},
		{"none-match on what exists", http.MethodPut, poolID, "If-None-Match", "*", 412},
		{"stale delete", http.MethodDelete, lbID + "/backendAddressPools/spare", "If-Match", `W/"stale"`, 412},
		{"none-match on what does not", http.MethodPut, absent, "If-None-Match", "*", 201},
		{"absent delete", http.MethodDelete, lbID + "/backendAddressPools/never", "If-Match", `W/"stale"`, 204},
	}
	for _, c := range cases {
		if a := sendRequest(t, emu, c.method, c.id, poolBody(), c.header, c.value); a.status != c.want {
			t.Errorf("%s: got %d, want %d: %s", c.name, a.status, c.want, a.raw)
		}
	}
}

// Without If-Match some addresses are lost: the test can fail.
func TestConcurrentWriters(t *testing.T) {
	const writers = 12
	for _, overlap := range append(armemu.OverlapAnswers(), behavior.Mixed) {
		t.Run(string(overlap), func(t *testing.T) {
			if lost := writers - concurrentWriters(t, overlap, writers, sendEtag{}); lost != 0 {
				t.Errorf("under If-Match %d of %d updates are lost", lost, writers)
			}
			if lost := writers - concurrentWriters(t, overlap, writers); lost == 0 {
				t.Error("without If-Match nothing was lost: this test could not have failed")
			}
		})
	}
}

// Returns the final number of addresses.
func concurrentWriters(t *testing.T, overlap behavior.Result, writers int, perCall ...policy.Policy) (held int) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{Seed: 3, LatencyScale: 1, Behavior: behavior.Behavior{Overlap: overlap}})
		pools := newClients(t, emu.Transport(), "http://emulator.test", perCall...).NewLoadBalancerBackendAddressPoolsClient()
		errs := make(chan error, writers)
		for i := range writers {
			random := rand.New(rand.NewPCG(9, uint64(i)))
			go func() { errs <- addUntilTaken(t.Context(), pools, random, fmt.Sprintf("10.0.0.%d", i+1)) }()
		}
		for range writers {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		held = len(poolIPs(t, emu, poolID))
	})
	return held
}

// addUntilTaken is a read-modify-write loop with a pause between read and write.
func addUntilTaken(ctx context.Context, pools *armnetwork.LoadBalancerBackendAddressPoolsClient, random *rand.Rand, ip string) error {
	for range 500 {
		got, err := pools.Get(ctx, "rg", "kubernetes", "web", nil)
		if err != nil {
			return err
		}
		pool := got.BackendAddressPool
		pool.Properties.VirtualNetwork = &armnetwork.SubResource{ID: new(vnetID)}
		var list []*armnetwork.LoadBalancerBackendAddress
		for _, a := range pool.Properties.LoadBalancerBackendAddresses {
			if *a.Properties.IPAddress != ip {
				list = append(list, a)
			}
		}
		list = append(list, address("n-"+ip, ip))
		pool.Properties.LoadBalancerBackendAddresses = list
		time.Sleep(time.Duration(random.IntN(60)) * time.Second)
		_, err = putPool(ctx, pools, "web", pool)
		if err == nil {
			return nil
		}
		if r, ok := errors.AsType[*azcore.ResponseError](err); !ok || r.StatusCode != 200 && r.StatusCode != 409 && r.StatusCode != 412 && r.StatusCode != 429 {
			return err
		}
		time.Sleep(time.Duration(random.IntN(30)) * time.Second)
	}
	return fmt.Errorf("%s was never taken", ip)
}
