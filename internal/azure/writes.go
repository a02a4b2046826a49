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

// Remaining writes of the caller and of the subscription. A 404 from Resource Manager's own index
// has neither header.
const (
	headerCallerWrites = "x-ms-ratelimit-remaining-subscription-writes"
	headerAllWrites    = "x-ms-ratelimit-remaining-subscription-global-writes"
)

// counts records a Microsoft.Network write. Response headers cover writes to Microsoft.Compute.
func (w wire) counts(ctx context.Context, c *call) {
	if w.writes != nil && c != nil && c.write() && !c.compute() {
		namespaces, now := calls.NamespacesOf(ctx), time.Now()
		w.writes.Wrote(c.id.SubscriptionID, now, namespaces.OfServices...)
		w.writes.WroteForPools(c.id.SubscriptionID, now, namespaces.OfPools...)
	}
}

func (w wire) learns(c *call, resp *http.Response) {
	if w.writes == nil || c == nil || resp == nil {
		return
	}
	left := pace.Left{Caller: remaining(resp.Header, headerCallerWrites), All: remaining(resp.Header, headerAllWrites)}
	if left.Caller >= 0 || left.All >= 0 {
		w.writes.Told(c.id.SubscriptionID, left, time.Now())
	}
}

// remaining returns -1 for a missing or invalid header.
func remaining(h http.Header, name string) int {
	n, err := strconv.ParseUint(h.Get(name), 10, 31)
	if err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}
