// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// Every try of a write counts, and no read; the remaining quota is recorded.
func TestWritesAreCounted(t *testing.T) {
	for _, tt := range []struct {
		about     string
		header    map[string]string
		status    int
		wantSpent float64
		wantLeft  float64
	}{
		{"one that is refused, and tells nothing", nil, 400, 1, 99},
		{"one that the SDK tries again", nil, 503, 4, 96},
		{"the caller's writes are as good as used up", map[string]string{headerIdentityWrites: "10"}, 400, 1, 2},
		{"everybody's are", map[string]string{headerIdentityWrites: "180", headerAllWrites: "4"}, 400, 1, 1},
		{"what is no number says nothing", map[string]string{headerIdentityWrites: "-1", headerAllWrites: "many"}, 400, 1, 99},
	} {
		t.Run(tt.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := ratelimit.New(0.5, 30*time.Second)
				client := newClient(t, &fakeARM{answer: func(int, *http.Request) reply {
					return reply{status: tt.status, header: tt.header, body: "{}"}
				}}, func(o *Options) { o.Writes, o.Retry.Delay = writes, time.Millisecond })
				_, _ = client.GetPool(t.Context(), webPool)
				_, _ = client.PutPool(t.Context(), readPool(t))
				figures := writes.ListUsage(time.Now())
				if len(figures) != 1 || figures[0].Used != tt.wantSpent || int(figures[0].Remaining+0.5) != int(tt.wantLeft) {
					t.Errorf("got %+v, want %v spent and %v left", figures, tt.wantSpent, tt.wantLeft)
				}
			})
		})
	}
}

// A 429 to a write for a used-up quota lowers the share; one for a lock or to a read does not.
func TestThrottledWritesLowerTheShare(t *testing.T) {
	for _, tt := range []struct {
		code    string
		write   bool
		lowered bool
		network bool
	}{
		{"TooManyRequests", true, false, false},
		{"ResourceRequestsThrottled", true, true, true},
		{"SubscriptionRequestsThrottled", true, true, false},
		{"SubscriptionRequestsThrottled", false, false, false},
		{"RetryableError", true, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			writes := ratelimit.New(0.5, 30*time.Second)
			body := readPool(t)
			client := newClient(t, &fakeARM{answer: func(int, *http.Request) reply {
				return reply{status: 429, header: map[string]string{"Retry-After": "60"}, body: `{"error":{"code":"` + tt.code + `","message":"wait"}}`}
			}}, func(o *Options) { o.Writes = writes })
			if tt.write {
				_, _ = client.PutPool(t.Context(), body)
			} else {
				_, _ = client.GetPool(t.Context(), webPool)
				writes.CountWrite(webPool.LoadBalancer.SubscriptionID, time.Now())
			}
			u := writes.ListUsage(time.Now())[0]
			if lowered := u.Share < 500; lowered != tt.lowered || (u.Fleet.Others != nil) != tt.network || tt.lowered && time.Until(*u.Fleet.ClosedUntil) != time.Minute {
				t.Errorf("%s, write %t: share %v, %+v", tt.code, tt.write, u.Share, u.Fleet)
			}
		})
	}
}

// A 429 that may concern only a resource lowers the share if Azure rejects two resources in a row.
func TestThrottledResources(t *testing.T) {
	for _, tt := range []struct {
		about    string
		pools    string
		statuses []int
		lowered  bool
	}{
		{"one pool, again and again", "aaaa", []int{429, 429, 429, 429}, false},
		{"two pools", "ab", []int{429, 429}, true},
		{"two pools, and an accepted write", "axb", []int{429, 200, 429}, false},
		{"two pools, and a rejected write", "axb", []int{429, 400, 429}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			writes := ratelimit.New(0.5, 30*time.Second)
			status := 0
			client := newClient(t, &fakeARM{answer: func(int, *http.Request) reply {
				return reply{status: status, header: map[string]string{"Retry-After": "60"}, body: `{"error":{"code":"TooManyRequests","message":"wait"}}`}
			}}, func(o *Options) { o.Writes = writes })
			for i, s := range tt.statuses {
				status = s
				pool := readPool(t)
				pool.ID.Name = tt.pools[i : i+1]
				_, _ = client.PutPool(t.Context(), pool)
			}
			if lowered := writes.ListUsage(time.Now())[0].Share < 500; lowered != tt.lowered {
				t.Errorf("%s: lowered %t, want %t", tt.about, lowered, tt.lowered)
			}
		})
	}
}
