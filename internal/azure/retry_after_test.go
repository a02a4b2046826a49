// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/armerror"
)

// A Retry-After of any status blocks all requests for the resource, but not for others.
func TestRetryAfterOfAResourceIsHonored(t *testing.T) {
	for _, status := range []int{400, 403, 404, 409, 412, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &fakeARM{answer: replySequence(reply{status: status, header: map[string]string{"Retry-After": "300"}, body: errorBody("Busy", "m")}, reply{status: 418})}
				client, start := newClient(t, wire), time.Now()
				b := readBalancer(t)
				write := func() error { _, err := client.PutLoadBalancer(t.Context(), b); return err }
				if f := armerror.FromError(write()); !f.RetryAt.Equal(start.Add(5*time.Minute)) || wire.count("") != 1 {
					t.Fatalf("%d requests, retry at %s: %v", wire.count(""), f.RetryAt, f)
				}
				for name, call := range map[string]func() error{
					"write": write,
					"read":  func() error { _, err := client.GetLoadBalancer(t.Context(), kubernetes); return err },
					"read in capitals": func() error {
						id := kubernetes
						id.Name = "KUBERNETES"
						_, err := client.GetLoadBalancer(t.Context(), id)
						return err
					},
					"delete": func() error { return client.DeleteLoadBalancer(t.Context(), b) },
				} {
					time.Sleep(30 * time.Second)
					err := call()
					f := armerror.FromError(err)
					if wire.count("") != 1 || f.Class != armerror.Retriable || f.Code != armerror.CodeRetryAfter || !f.RetryAt.Equal(start.Add(5*time.Minute)) {
						t.Errorf("%s: %d requests; %#v", name, wire.count(""), f)
					}
					if throttled, ok := errors.AsType[*retryrepectthrottled.ThrottleError](err); !ok || !throttled.RetryAfter.Equal(f.RetryAt) {
						t.Errorf("%s: %v is not throttled as others are", name, err)
					}
				}
				if _, err := client.GetPool(t.Context(), poolID("s1", "other", "p")); wire.count("") != 2 {
					t.Errorf("a neighbour was not asked: %v", err)
				}
				time.Sleep(time.Until(start.Add(5 * time.Minute)))
				if _ = write(); wire.count("") != 3 {
					t.Error("the load balancer is not asked when its time has come")
				}
			})
		})
	}
}

// The message names the resource, the time and the reason.
func TestThrottledResourceMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, &fakeARM{answer: replySequence(reply{status: 429, header: map[string]string{"Retry-After": "60"}, body: errorBody("TooManyRequests", "m")})})
		for range 2 {
			_, err := client.ListPublicIPs(t.Context(), "s1", "rg")
			if f := armerror.FromError(err); f.Code != armerror.CodeRetryAfter {
				continue
			}
			want := "list public IPs of resource group rg: not sent: no request for public IPs of resource group rg before 2000-01-01T00:01:00Z, because of 429 TooManyRequests"
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		}
	})
}

// Another caller's read during a write gets a Retry-After: the final GET of the write waits as
// well, and the write is not lost.
func TestTheResultOfAWriteIsFetchedWhenItsTimeHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{}
		var client *Client
		wire.answer = func(_ int, r *http.Request) reply {
			switch callOf(r.Context()).op {
			case opPut:
				return accepted
			case opPoll:
				if _, err := client.GetPool(context.Background(), webPool); err == nil {
					t.Error("the reader was not refused")
				}
				return done
			case opGet:
				return reply{status: 503, header: map[string]string{"Retry-After": "90"}}
			}
			return shown
		}
		client = newClient(t, wire)
		if _, err := client.PutPool(t.Context(), readPool(t)); err != nil {
			t.Fatal(err)
		}
		if got := wire.timeline(epoch); got != "0s PUT, 2s poll, 2s GET, 1m32s GET" {
			t.Errorf("on the wire: %s", got)
		}
	})
}

// The same beyond the deadline: the outcome is unknown, and the time is returned.
func TestAResultThatHasToWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(accepted, done, reply{status: 429, header: map[string]string{"Retry-After": "3600"}})}
		client := newClient(t, wire)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		_, err := client.PutPool(ctx, readPool(t))
		if f := armerror.FromError(err); f.Code != armerror.CodeOutcomeUnknown || !f.MayBeApplied || !f.RetryAt.Equal(time.Now().Add(time.Hour)) {
			t.Errorf("got %#v", f)
		}
	})
}

// Memory is bounded for any number of resources.
func TestRetryAfterRecordsAreBounded(t *testing.T) {
	r, now := newRetryAfterPolicy(), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for i := range 3 * maxRetryAfterEntries {
		r.recordEntry(fmt.Sprint(i), retryAfterEntry{until: now.Add(time.Duration(i+1) * time.Second)}, now)
	}
	if len(r.entries) != maxRetryAfterEntries {
		t.Errorf("%d are kept", len(r.entries))
	}
	if _, ok := r.activeEntry(fmt.Sprint(3*maxRetryAfterEntries-1), now); !ok {
		t.Error("the longest is forgotten")
	}
	later := now.Add(24 * time.Hour)
	for i := range maxRetryAfterEntries {
		r.activeEntry(fmt.Sprint(i), later)
	}
	r.recordEntry("next", retryAfterEntry{until: later.Add(time.Second)}, later)
	r.recordEntry("next", retryAfterEntry{until: later}, later)
	if found, ok := r.activeEntry("next", later); !ok || !found.until.Equal(later.Add(time.Second)) {
		t.Errorf("a shorter one ended a longer one: %v", found)
	}
}
