// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"weir.dev/weir/internal/fault"
)

// wireCall is what a read and a write cost, and come to, if Azure gives one answer.
type wireCall struct {
	name     string
	answer   reply
	get, put int // requests
	class    fault.Class
	code     string        // of both, unless putCode is set
	putClass fault.Class   // if it differs
	putCode  string        // if it differs
	retryAt  time.Duration // after the call's end; 0 is none named
	took     time.Duration // of a call whose retries are all spent
}

func wireCalls() []wireCall {
	after := func(value string) map[string]string { return map[string]string{"Retry-After": value} }
	lost := errors.New("connection reset by peer")
	return []wireCall{
		{name: "408", answer: reply{status: 408}, get: 4, put: 4, class: fault.Terminal, code: "Request Timeout", took: 3 * time.Minute},
		{name: "500", answer: reply{status: 500}, get: 4, put: 4, class: fault.Terminal, code: "Internal Server Error", took: 3 * time.Minute},
		{name: "502", answer: reply{status: 502}, get: 4, put: 4, class: fault.Terminal, code: "Bad Gateway", took: 3 * time.Minute},
		{name: "503", answer: reply{status: 503}, get: 4, put: 4, class: fault.Terminal, code: "Service Unavailable", took: 3 * time.Minute},
		{name: "504", answer: reply{status: 504}, get: 4, put: 4, class: fault.Terminal, code: "Gateway Timeout", took: 3 * time.Minute},
		{name: "503, Retry-After 2", answer: reply{status: 503, header: after("2")}, get: 4, put: 4, class: fault.Terminal, code: "Service Unavailable", retryAt: 2 * time.Second, took: 6 * time.Second},
		{name: "503, Retry-After beyond the SDK's patience", answer: reply{status: 503, header: after("120")}, get: 1, put: 1, class: fault.Terminal, code: "Service Unavailable", retryAt: 2 * time.Minute},
		{name: "501", answer: reply{status: 501}, get: 1, put: 1, class: fault.Terminal, code: "Not Implemented"},
		{name: "429", answer: reply{status: 429, body: subBody}, get: 1, put: 1, class: fault.Retriable, code: "SubscriptionRequestsThrottled"},
		{name: "429, Retry-After 17", answer: reply{status: 429, body: subBody, header: after("17")}, get: 1, put: 1, class: fault.Retriable, code: "SubscriptionRequestsThrottled", retryAt: 17 * time.Second},
		{name: "429, Retry-After a date", answer: reply{status: 429, body: lockBody, header: after("Sat, 01 Jan 2000 00:01:30 GMT")}, get: 1, put: 1, class: fault.Retriable, code: "RetryableErrorDueToAnotherOperation", retryAt: 90 * time.Second},
		{name: "429, Retry-After no time", answer: reply{status: 429, header: after("soon")}, get: 1, put: 1, class: fault.Retriable, code: "Too Many Requests"},
		{name: "409", answer: reply{status: 409, body: errorBody("AnotherOperationInProgress", "busy")}, get: 1, put: 1, class: fault.Retriable, code: "AnotherOperationInProgress"},
		{name: "412", answer: reply{status: 412, body: errorBody("PreconditionFailed", "Precondition failed.", "PreconditionFailedEtagMismatch", "Etag provided does not match")}, get: 1, put: 1, class: fault.Retriable, code: "PreconditionFailedEtagMismatch"},
		{name: "404 of the load balancer", answer: reply{status: 404, body: errorBody("ResourceNotFound", "The Resource 'Microsoft.Network/loadBalancers/kubernetes' under resource group 'rg' was not found.")}, get: 1, put: 1, class: fault.Stale, code: "ResourceNotFound"},
		{name: "404 of a virtual network", answer: reply{status: 404, body: errorBody("ResourceNotFound", "The Resource 'Microsoft.Network/virtualNetworks/v' under resource group 'rg' was not found.")}, get: 1, put: 1, class: fault.Terminal, code: "ResourceNotFound"},
		{name: "403", answer: reply{status: 403, body: errorBody("AuthorizationFailed", "no")}, get: 1, put: 1, class: fault.Terminal, code: "AuthorizationFailed"},
		{name: "400", answer: reply{status: 400, body: errorBody("DuplicateResourceName", "twice")}, get: 1, put: 1, class: fault.Terminal, code: "DuplicateResourceName"},
		{name: "no answer", answer: reply{err: lost}, get: 4, put: 1, took: 3 * time.Minute, class: fault.Terminal, code: fault.CodeUnreachable, putClass: fault.Retriable, putCode: fault.CodeOutcomeUnknown},
		{name: "202 to a write", answer: reply{status: 202}, get: 1, put: 1, class: fault.Terminal, code: "Accepted", putClass: fault.Retriable, putCode: fault.CodeOutcomeUnknown},
		{name: "half an answer", answer: reply{status: 200, body: `{"properties":`}, get: 1, put: 1, class: fault.Terminal, code: fault.CodeUnclassified, putClass: fault.Retriable, putCode: fault.CodeOutcomeUnknown},
	}
}

// The table of what one call costs on the wire, whatever Azure answers: who owns a
// condition shows in the number of requests.
func TestCallsOnTheWire(t *testing.T) {
	for _, tt := range wireCalls() {
		check := func(t *testing.T, err error, calls, want int, class fault.Class, code string, took time.Duration, start time.Time) {
			t.Helper()
			f := wantFault(t, err, class, code)
			if calls != want {
				t.Errorf("%d requests, want %d", calls, want)
			}
			if got := time.Since(start); got != took {
				t.Errorf("took %v, want %v", got, took)
			}
			retryAt := time.Time{}
			if tt.retryAt > 0 {
				retryAt = time.Now().Add(tt.retryAt)
			}
			if !f.RetryAt.Equal(retryAt) {
				t.Errorf("retry at %v, want %v", f.RetryAt, retryAt)
			}
			if answer, ok := errors.AsType[*azcore.ResponseError](err); tt.answer.status >= 400 && (!ok || answer.RawResponse == nil) {
				t.Error("the SDK's error and its response are not in the chain")
			}
		}
		t.Run("GET "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire, start := &fakeARM{answer: in(tt.answer)}, time.Now()
				_, err := newClient(t, wire).Get(t.Context(), webPool)
				check(t, err, wire.count(""), tt.get, tt.class, tt.code, tt.took, start)
			})
		})
		t.Run("PUT "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := read(t)
				wire, start := &fakeARM{answer: in(tt.answer)}, time.Now()
				_, err := newClient(t, wire).Put(t.Context(), pool)
				class, code := tt.class, tt.code
				if tt.putCode != "" {
					class, code = tt.putClass, tt.putCode
				}
				took := tt.took
				if tt.put == 1 {
					took = 0
				}
				check(t, err, wire.count(""), tt.put, class, code, took, start)
			})
		})
	}
}

func TestTheSDKsRetriesSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: in(reply{err: errors.New("reset")}, reply{status: 503}, shown)}
		pool, err := newClient(t, wire).Get(t.Context(), webPool)
		if err != nil || len(pool.Addresses) != 1 || wire.count("") != 3 {
			t.Errorf("got %d addresses and %v after %d requests", len(pool.Addresses), err, wire.count(""))
		}
	})
}

// A context that is done is the lane's to interpret, so it has to be in the chain.
func TestContextDone(t *testing.T) {
	t.Run("cancelled before a read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newClient(t, &fakeARM{answer: in(shown)}).Get(ctx, webPool)
		wantFault(t, err, fault.Terminal, fault.CodeUnclassified)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not say that the context was cancelled", err)
		}
	})
	t.Run("cancelled while a write is on the wire", func(t *testing.T) {
		pool := read(t)
		ctx, cancel := context.WithCancel(t.Context())
		wire := &fakeARM{answer: func(int, *http.Request) reply { cancel(); return accepted }}
		_, err := newClient(t, wire).Put(ctx, pool)
		wantFault(t, err, fault.Retriable, fault.CodeOutcomeUnknown)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not say that the context was cancelled", err)
		}
	})
	t.Run("deadline while waiting for Azure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pool := read(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := newClient(t, &fakeARM{answer: in(accepted, working)}).Put(ctx, pool)
			wantFault(t, err, fault.Retriable, fault.CodeOutcomeUnknown)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("deadline while a read is being retried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			wire := &fakeARM{answer: in(reply{status: 503, header: map[string]string{"Retry-After": "20"}})}
			_, err := newClient(t, wire).Get(ctx, webPool)
			wantFault(t, err, fault.Retriable, fault.CodeOutcomeUnknown)
			if !errors.Is(err, context.DeadlineExceeded) || wire.count("") != 2 {
				t.Errorf("got %v after %d requests", err, wire.count(""))
			}
		})
	})
}

// What Azure would refuse, or what would lose something, never leaves.
func TestRefusedBeforeTheWire(t *testing.T) {
	good := read(t)
	evil := good
	evil.ID.Name = "x/../../y?z"
	unread := good
	unread.Origin = nil
	nic := good
	nic.NIC = true
	bare := good
	bare.Etag = ""
	tests := []struct {
		name, code string
		call       func(*Client) error
		says       string
	}{
		{"id in a read", codeInvalidID, func(c *Client) error { _, err := c.Get(t.Context(), evil.ID); return err }, `pool name "x/../../y?z"`},
		{"id in a write", codeInvalidID, func(c *Client) error { _, err := c.Put(t.Context(), evil); return err }, `pool name`},
		{"never read", codeNotRead, func(c *Client) error { _, err := c.Put(t.Context(), unread); return err }, "was not read before"},
		{"network interfaces", codeNetworkInterface, func(c *Client) error { _, err := c.Put(t.Context(), nic); return err }, "network interfaces"},
		{"no etag", codeNoEtag, func(c *Client) error { _, err := c.Put(t.Context(), bare); return err }, "etag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wire := &fakeARM{answer: in(shown)}
			f := wantFault(t, tt.call(newClient(t, wire)), fault.Terminal, tt.code)
			if !strings.Contains(f.Error(), tt.says) {
				t.Errorf("message %q does not say %q", f.Error(), tt.says)
			}
			if n := wire.count(""); n != 0 {
				t.Errorf("%d requests left", n)
			}
		})
	}
	t.Run("no etag is no hindrance without If-Match", func(t *testing.T) {
		wire := &fakeARM{answer: in(shown)}
		if _, err := newClient(t, wire, func(o *Options) { o.WithoutIfMatch = true }).Put(t.Context(), bare); err != nil {
			t.Error(err)
		}
	})
}
