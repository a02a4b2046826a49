// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limits are request limits. ARM has token buckets per subscription and caller; the network
// provider has fixed windows per subscription.
type Limits struct {
	Reads, Writes, Deletes Bucket
	// Global multiplies the limits for all callers of a subscription together; 0 is no limit.
	Global float64
	// NetworkReads and NetworkWrites (writes and deletes together) are the limits per
	// NetworkWindow; 0 is no limit.
	NetworkReads, NetworkWrites int
	NetworkWindow               time.Duration
}

// Bucket holds Size tokens and is refilled at PerSecond; Size 0 is no limit.
type Bucket struct {
	Size      float64
	PerSecond float64
}

// AzureLimits returns the documented limits: ARM allows 250 reads and refills 25 per second, 200
// writes and 200 deletes at 10 per second, and 15 times as much for all callers; Microsoft.Network
// allows 1,000 writes and deletes and 10,000 reads in five minutes.
func AzureLimits() *Limits {
	return &Limits{
		Reads:        Bucket{Size: 250, PerSecond: 25},
		Writes:       Bucket{Size: 200, PerSecond: 10},
		Deletes:      Bucket{Size: 200, PerSecond: 10},
		Global:       15,
		NetworkReads: 10_000, NetworkWrites: 1_000, NetworkWindow: 5 * time.Minute,
	}
}

type limiter struct {
	limits  *Limits
	buckets map[bucketKey]*bucketState
	windows map[bucketKey]*quotaWindow
}

type bucketKey struct{ subscription, caller, region, class string }

type bucketState struct {
	tokens float64
	at     time.Time
}

// quotaWindow counts the requests since the first one. Fixed rather than sliding is assumed.
type quotaWindow struct {
	opened time.Time
	count  int
}

func newLimiter(limits *Limits) *limiter {
	return &limiter{limits: limits, buckets: map[bucketKey]*bucketState{}, windows: map[bucketKey]*quotaWindow{}}
}

// requestClass returns ARM's operation type. Polls count as reads (assumed).
func (x *exchange) requestClass() string {
	switch x.req.Method {
	case http.MethodGet, http.MethodHead:
		return "reads"
	case http.MethodDelete:
		return "deletes"
	default:
		return "writes"
	}
}

func (l *Limits) bucketFor(class string) Bucket {
	switch class {
	case "reads":
		return l.Reads
	case "deletes":
		return l.Deletes
	default:
		return l.Writes
	}
}

// takeToken applies ARM's limits, per caller and per subscription.
func (e *Emulator) takeToken(x *exchange) *Problem {
	limits := e.limits.limits
	if limits == nil {
		return nil
	}
	class := x.requestClass()
	bucket := limits.bucketFor(class)
	if bucket.Size <= 0 {
		return nil
	}
	total := Bucket{Size: bucket.Size * limits.Global, PerSecond: bucket.PerSecond * limits.Global}
	mine := e.limits.refillBucket(bucketKey{subscription: x.route.subscription, caller: x.callerID, class: class}, bucket, x.now)
	all := e.limits.refillBucket(bucketKey{subscription: x.route.subscription, class: class}, total, x.now)
	var refused *Problem
	switch {
	case mine.tokens < 1:
		refused = mine.throttleError(bucket, fmt.Sprintf("subscription actor '%s'", x.callerID), class)
	case limits.Global > 0 && all.tokens < 1:
		refused = all.throttleError(total, fmt.Sprintf("subscription '%s'", x.route.subscription), class)
	default:
		mine.tokens--
		all.tokens--
	}
	x.header.Set("x-ms-ratelimit-remaining-subscription-"+class, strconv.Itoa(int(mine.tokens)))
	if limits.Global > 0 {
		x.header.Set("x-ms-ratelimit-remaining-subscription-global-"+class, strconv.Itoa(int(all.tokens)))
	}
	return refused
}

// refillBucket refills and returns a bucket.
func (l *limiter) refillBucket(key bucketKey, b Bucket, now time.Time) *bucketState {
	is := l.buckets[key]
	if is == nil {
		is = &bucketState{tokens: b.Size, at: now}
		l.buckets[key] = is
	}
	is.tokens = min(b.Size, is.tokens+now.Sub(is.at).Seconds()*b.PerSecond)
	is.at = now
	return is
}

// throttleError returns the error of an empty bucket. That the global bucket's error is alike is assumed.
func (l *bucketState) throttleError(b Bucket, who, class string) *Problem {
	wait := 5 * time.Minute
	if b.PerSecond > 0 {
		wait = max(time.Duration((1-l.tokens)/b.PerSecond*float64(time.Second)), 1)
	}
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "SubscriptionRequestsThrottled", RetryAfter: wait, Gateway: true,
		Message: fmt.Sprintf("Number of '%s' requests for %s exceeded. Please try again after '%s' seconds after additional tokens are available.",
			class[:len(class)-1], who, wholeSeconds(wait)),
	}
}

// removeThrottleHeaders removes throttle headers from Resource Manager's own 404s, which reach no provider.
func (p *Problem) removeThrottleHeaders(h http.Header) {
	if !p.Gateway || p.Code != "ResourceNotFound" && p.Code != "ResourceGroupNotFound" {
		return
	}
	for key := range h {
		if strings.HasPrefix(key, "X-Ms-Ratelimit-") {
			delete(h, key)
		}
	}
}

// requestRegion returns the region of a write's resource; "" for all other requests.
func (e *Emulator) requestRegion(x *exchange) string {
	if x.route.id.root == nil || x.requestClass() == "reads" {
		return ""
	}
	if agg := e.aggregates[x.route.id.rootKey()]; agg != nil {
		return normalizedLocation(agg.body)
	}
	body, _ := x.decodeObject()
	return normalizedLocation(body)
}

// takeWindow applies the network provider's quotas. Error code and part of the message are assumed.
func (e *Emulator) takeWindow(x *exchange) *Problem {
	if e.limits.limits == nil || x.route.namespace != network {
		return nil
	}
	class, limit := "maxWriteOrDeleteCallsPer5Min", e.limits.limits.NetworkWrites
	if x.requestClass() == "reads" {
		class, limit = "maxGetCallsPer5Min", e.limits.limits.NetworkReads
	}
	length := e.limits.limits.NetworkWindow
	if limit <= 0 || length <= 0 {
		return nil
	}
	key := bucketKey{subscription: x.route.subscription, region: e.requestRegion(x), class: class}
	w := e.limits.windows[key]
	if w == nil || x.now.Sub(w.opened) >= length {
		w = &quotaWindow{opened: x.now}
		e.limits.windows[key] = w
	}
	if w.count < limit {
		w.count++
		return nil
	}
	wait := w.opened.Add(length).Sub(x.now)
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: wait,
		Message: fmt.Sprintf("The quota %s of this subscription is used up: %d in %s. Please try again after '%s' seconds.",
			class, limit, length, wholeSeconds(wait)),
	}
}
