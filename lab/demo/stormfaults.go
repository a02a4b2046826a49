// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/http"
	"strconv"
	"time"
)

// The storm of faults.
const (
	// stormLength is how long Azure rejects writes. A pool's third attempt comes two intervals plus
	// the longer Retry-After after its first, so outside the storm; without Retry-After it would be
	// inside, and the fourth and last outside.
	stormLength = 12 * time.Second
	// poolRetryAfter is the Retry-After for one pool in whole seconds, longer than an interval to
	// make the wait visible.
	poolRetryAfter = 7 * time.Second
	// gateRetryAfter is the Retry-After for the subscription, longer than an interval so that
	// another pool becomes due and has to wait.
	gateRetryAfter = 6 * time.Second
	// stormLatency is the latency of a write of the contested pool, so that the second writer is
	// faster.
	stormLatency = 500 * time.Millisecond
)

// Names of the storm's faults in the emulator's call log.
const (
	faultNotProvisioned = "not provisioned"
	faultLatency        = "slow on its way"
	faultOtherOperation = "other operation"
	faultSubscription   = "subscription throttled"
)

// The pools affected by the storm.
const (
	throttledPool = "shop-web" // 429 during the storm
	conflictPool  = "shop-api" // slow writes that the second writer overtakes
	busyPool      = "shop-db"  // subscription write quota exhausted, then 409
)

// stormFaults returns the emulator's fault script, with errors that Azure really returns.
func stormFaults() object {
	put := func(pool string, times int) object {
		m := object{"kind": "put", "path": "backendAddressPools/" + pool, "until": stormLength.String()}
		if times > 0 {
			m["maxMatches"] = times
		}
		return m
	}
	byWeir := func(m object) object { m["userAgent"] = "weir/"; return m }
	retryAfter := func(d time.Duration) object { return object{"Retry-After": strconv.Itoa(int(d.Seconds()))} }
	return object{"rules": []object{
		{"name": faultNotProvisioned, "match": put(throttledPool, 0), "action": object{
			"status": http.StatusTooManyRequests, "headers": retryAfter(poolRetryAfter), "code": "RetryableError",
			"message": "A retryable error occurred.",
			"details": []object{{"code": "ReferencedResourceNotProvisioned", "message": "A resource that the pool refers to is being updated."}},
		}},
		{"name": faultLatency, "match": byWeir(put(conflictPool, 0)), "action": object{"delay": stormLatency.String()}},
		{"name": faultSubscription, "match": put(busyPool, 1), "action": object{
			"status": http.StatusTooManyRequests, "headers": retryAfter(gateRetryAfter), "code": "SubscriptionRequestsThrottled",
			"message": "Number of 'write' requests for the subscription exceeded. Please try again later.",
		}},
		{"name": faultOtherOperation, "match": put(busyPool, 1), "action": object{
			"status": http.StatusConflict, "code": "AnotherOperationInProgress",
			"message": "Another operation on this or dependent resource is in progress.",
		}},
	}}
}
