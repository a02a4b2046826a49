// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/http"
	"strconv"
	"time"
)

// The storm.
const (
	// stormLength is how long Azure refuses. A pool's third attempt comes two intervals
	// and the longer Retry-After behind its first, so outside; without the latter it
	// would be within, and the fourth and last outside.
	stormLength = 12 * time.Second
	// poolRetryAfter is what the 429 for one pool asks for, in whole seconds: more than
	// an interval, so that it shows who waits for it.
	poolRetryAfter = 7 * time.Second
	// gateRetryAfter is what the 429 for the subscription asks for: more than an
	// interval, so that another pool is due meanwhile and has to wait.
	gateRetryAfter = 6 * time.Second
	// stormTravel is how long a write of the contested pool travels, so that somebody
	// else is faster.
	stormTravel = 500 * time.Millisecond
)

// Names of the storm's faults; the emulator's call log shows them.
const (
	faultNotProvisioned = "not provisioned"
	faultTravel         = "slow on its way"
	faultOtherOperation = "other operation"
	faultSubscription   = "subscription throttled"
)

// The pools that the storm hits, each in its own way.
const (
	throttledPool = "shop-web" // 429, as long as the storm lasts
	contestedPool = "shop-api" // its writes are slow, and the second writer overtakes them
	busyPool      = "shop-db"  // the subscription's writes are used up, then 409
)

// stormFaults is the emulator's fault script of the storm. The errors are those that
// Azure is known to give.
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
		{"name": faultTravel, "match": byWeir(put(contestedPool, 0)), "action": object{"delay": stormTravel.String()}},
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
