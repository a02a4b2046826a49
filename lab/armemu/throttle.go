// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limits are request limits: ARM's token buckets per subscription and caller, and the network
// provider's windows per subscription.
type Limits struct {
	Reads, Writes, Deletes Bucket
	// Global multiplies the limits for all callers of a subscription; 0 is no limit.
	Global float64
	// NetworkWrites includes deletes; 0 is no limit.
	NetworkReads, NetworkWrites int
	NetworkWindow               time.Duration
}

// Bucket is a token bucket. Size 0 is no limit.
type Bucket struct {
	Size      float64
	PerSecond float64
}

// AzureLimits returns the documented limits.
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

// quotaWindow is fixed rather than sliding (assumed).
type quotaWindow struct {
	opened time.Time
	count  int
}

func newLimiter(limits *Limits) *limiter {
	return &limiter{limits: limits, buckets: map[bucketKey]*bucketState{}, windows: map[bucketKey]*quotaWindow{}}
}

// requestClass counts polls as reads (assumed).
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
	caller := e.limits.refillBucket(bucketKey{subscription: x.route.subscription, caller: x.callerID, class: class}, bucket, x.now)
	callers := e.limits.refillBucket(bucketKey{subscription: x.route.subscription, class: class}, total, x.now)
	var problem *Problem
	switch {
	case caller.tokens < 1:
		problem = caller.throttleError(bucket, fmt.Sprintf("subscription actor '%s'", x.callerID), class)
	case limits.Global > 0 && callers.tokens < 1:
		problem = callers.throttleError(total, fmt.Sprintf("subscription '%s'", x.route.subscription), class)
	default:
		caller.tokens--
		callers.tokens--
	}
	x.header.Set("x-ms-ratelimit-remaining-subscription-"+class, strconv.Itoa(int(caller.tokens)))
	if limits.Global > 0 {
		x.header.Set("x-ms-ratelimit-remaining-subscription-global-"+class, strconv.Itoa(int(callers.tokens)))
	}
	return problem
}

func (l *limiter) refillBucket(key bucketKey, b Bucket, now time.Time) *bucketState {
	got := l.buckets[key]
	if got == nil {
		got = &bucketState{tokens: b.Size, at: now}
		l.buckets[key] = got
	}
	got.tokens = min(b.Size, got.tokens+now.Sub(got.at).Seconds()*b.PerSecond)
	got.at = now
	return got
}

// throttleError returns the same error for the global bucket (assumed).
func (s *bucketState) throttleError(b Bucket, actor, class string) *Problem {
	wait := 5 * time.Minute
	if b.PerSecond > 0 {
		wait = max(time.Duration((1-s.tokens)/b.PerSecond*float64(time.Second)), 1)
	}
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "SubscriptionRequestsThrottled", RetryAfter: wait, Gateway: true,
		Message: fmt.Sprintf("Number of '%s' requests for %s exceeded. Please try again after '%s' seconds after additional tokens are available.",
			class[:len(class)-1], actor, wholeSeconds(wait)),
	}
}

// removeThrottleHeaders: Resource Manager's own 404s reach no provider.
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

// takeWindow: error code and part of the message are assumed.
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
