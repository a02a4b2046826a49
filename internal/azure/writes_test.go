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
		{"the caller's writes are as good as used up", map[string]string{headerIdentityWrites: "10"}, 400, 1, 5},
		{"everybody's are", map[string]string{headerIdentityWrites: "180", headerAllWrites: "4"}, 400, 1, 2},
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
