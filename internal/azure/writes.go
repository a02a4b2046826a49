// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

// Remaining writes of the caller and of the subscription. A 404 from Resource Manager's own index
// has neither header.
const (
	headerIdentityWrites = "x-ms-ratelimit-remaining-subscription-writes"
	headerAllWrites      = "x-ms-ratelimit-remaining-subscription-global-writes"
)

// countWrite records a Microsoft.Network write. Response headers cover writes to Microsoft.Compute.
func (o observePolicy) countWrite(ctx context.Context, c *call) {
	if o.writes != nil && c != nil && c.isWrite() && !c.isCompute() {
		namespaces, now := requestlog.ContextNamespaces(ctx), time.Now()
		o.writes.CountWrite(c.id.SubscriptionID, now, namespaces.OfServices...)
		o.writes.CountPoolWrite(c.id.SubscriptionID, now, namespaces.OfPools...)
	}
}

func (o observePolicy) recordRemaining(c *call, resp *http.Response) {
	if o.writes == nil || c == nil || resp == nil {
		return
	}
	remaining := ratelimit.Remaining{Caller: parseRemaining(resp.Header, headerIdentityWrites), Subscription: parseRemaining(resp.Header, headerAllWrites)}
	if remaining.Caller >= 0 || remaining.Subscription >= 0 {
		o.writes.SetRemaining(c.id.SubscriptionID, remaining, time.Now())
	}
}

// recordThrottle records a 429 to a write for a used-up quota, and writes that no quota rejects.
func (o observePolicy) recordThrottle(c *call, resp *http.Response, now time.Time) {
	if o.writes == nil || c == nil || resp == nil || !c.isWrite() || c.isCompute() {
		return
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		o.writes.RecordAccepted(c.id.SubscriptionID)
		return
	}
	if resp.StatusCode != http.StatusTooManyRequests {
		return
	}
	codes, t := parseCodes(resp), ratelimit.Throttle{}
	switch isQuota := slices.ContainsFunc(codes, func(code string) bool { return slices.Contains(quotaCodes, code) }); {
	case slices.Contains(codes, codeTooManyRequests):
		t.Network, t.Resource = true, c.armID()
	case isQuota:
		t.Network = slices.Contains(codes, "ResourceRequestsThrottled")
	default:
		return
	}
	var named bool
	if t.Until, named = ratelimit.RetryAfter(resp.Header, now); !named {
		t.Until = now.Add(closedWithoutRetryAfter)
	}
	o.writes.RecordThrottle(c.id.SubscriptionID, t, now)
}

// parseRemaining returns -1 for a missing or invalid header.
func parseRemaining(h http.Header, name string) int {
	n, err := strconv.ParseUint(h.Get(name), 10, 31)
	if err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}
