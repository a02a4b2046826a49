// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/pace"
)

// Azure Resource Manager tells beside each answer to a write how many more it takes just now: of
// the caller, and of all callers of the subscription. Answers for what it finds missing in its
// own index carry neither.
const (
	headerCallerWrites = "x-ms-ratelimit-remaining-subscription-writes"
	headerAllWrites    = "x-ms-ratelimit-remaining-subscription-global-writes"
)

// counts counts a write in Microsoft.Network that leaves: the window that is counted is that
// provider's. What a write in Microsoft.Compute takes of Resource Manager's bucket, answers tell.
func (w wire) counts(ctx context.Context, c *call) {
	if w.writes != nil && c != nil && c.write() && !c.compute() {
		of, now := calls.NamespacesOf(ctx), time.Now()
		w.writes.Wrote(c.id.SubscriptionID, now, of.OfServices...)
		w.writes.WroteForPools(c.id.SubscriptionID, now, of.OfPools...)
	}
}

// learns takes what an answer tells of the writes that are left.
func (w wire) learns(c *call, resp *http.Response) {
	if w.writes == nil || c == nil || resp == nil {
		return
	}
	left := pace.Left{Caller: remaining(resp.Header, headerCallerWrites), All: remaining(resp.Header, headerAllWrites)}
	if left.Caller >= 0 || left.All >= 0 {
		w.writes.Told(c.id.SubscriptionID, left, time.Now())
	}
}

// remaining is the number in a header, or -1.
func remaining(h http.Header, name string) int {
	n, err := strconv.ParseUint(h.Get(name), 10, 31)
	if err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}
