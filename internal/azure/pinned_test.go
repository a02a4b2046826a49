// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armerror"
)

// A URL of another host is never requested, and the outcome of the accepted write is unknown.
func TestPollToAnotherHostIsRejected(t *testing.T) {
	named := func(header, address string) reply {
		return reply{status: 201, body: poolBody("Updating", "10.0.0.4"), header: map[string]string{header: address}}
	}
	moves := reply{status: 202, header: map[string]string{"Location": "https://elsewhere.example/operationResults/7"}}
	tests := []struct {
		name     string
		answers  []reply
		follows  int
		wantText string
	}{
		{"another host", []reply{named("Azure-AsyncOperation", "https://elsewhere.example/operations/7"), done, shown}, 0, "refusing to send a token to elsewhere.example"},
		{"another host, as a Location", []reply{named("Location", "https://elsewhere.example/operations/7"), shown}, 0, "refusing to send a token to elsewhere.example"},
		{"a Location that moves away", []reply{named("Location", "https://management.azure.com/operationResults/7"), moves, shown}, 1, "refusing to send a token to elsewhere.example"},
		{"plain HTTP", []reply{named("Azure-AsyncOperation", "http://management.azure.com/operations/7"), done, shown}, 0, "over plain HTTP to management.azure.com"},
		{"a region", []reply{named("Azure-AsyncOperation", "https://eastus.management.azure.com/operations/7"), done, shown}, 2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, wire := readPool(t), &fakeARM{answer: replySequence(tt.answers...)}
				_, err := newClient(t, wire).PutPool(t.Context(), pool)
				for _, call := range wire.calls {
					if !strings.HasSuffix(call.host, "management.azure.com") {
						t.Errorf("%s %s got the token", call.method, call.host)
					}
				}
				if n := len(wire.calls) - 1; n != tt.follows {
					t.Errorf("%d requests followed the write, want %d", n, tt.follows)
				}
				if tt.wantText == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				f := wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
				if !strings.Contains(f.Error(), tt.wantText) || !strings.Contains(f.Error(), "could not follow the accepted write") {
					t.Errorf("message %q", f.Error())
				}
			})
		})
	}
}

// After a response with only a Location, the SDK accepts other statuses.
func TestFollowingALocation(t *testing.T) {
	began := reply{status: 201, body: poolBody("Updating", "10.0.0.4"), header: map[string]string{"Location": "https://management.azure.com/operations/7"}}
	yet, lock := reply{status: 202}, reply{status: 429, body: lockBody}
	tests := []struct {
		name     string
		answers  []reply
		timeline string
		unknown  bool
	}{
		{"done", []reply{began, yet, shown}, "0s PUT, 2s poll, 4s poll", false},
		{"throttled", []reply{began, slower(lock, "7"), lock, shown}, "0s PUT, 2s poll, 9s poll, 19s poll", false},
		{"out of order", []reply{began, {status: 503}}, "0s PUT, 2s poll, 1m2s poll, 2m2s poll, 3m2s poll", true},
		{"impatient", []reply{began, slower(reply{status: 503}, "120")}, "0s PUT, 2s poll", true},
		{"missing", []reply{began, {status: 404}}, "0s PUT, 2s poll", true},
		{"moved", []reply{began, {status: 302}}, "0s PUT, 2s poll", true},
		{"nothing to show", []reply{began, {status: 204}}, "0s PUT, 2s poll", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for i := range tt.answers { // the operation URL shows the pool
					tt.answers[i].body = strings.ReplaceAll(tt.answers[i].body, pathPlaceholder, webPool.String())
				}
				pool, wire, start := readPool(t), &fakeARM{answer: replySequence(tt.answers...)}, epoch
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				_, err := newClient(t, wire).PutPool(ctx, pool)
				if got := wire.timeline(start); got != tt.timeline {
					t.Errorf("on the wire:\n got %s\nwant %s", got, tt.timeline)
				}
				if tt.unknown {
					wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
