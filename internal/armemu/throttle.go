// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Limits are request limits. ARM's are token buckets for each subscription and
// caller; the network provider's count within a window for each subscription.
type Limits struct {
	Reads, Writes, Deletes Bucket
	// NetworkReads and NetworkWrites (writes and deletes together) are allowed
	// in each NetworkWindow; 0 is no limit.
	NetworkReads, NetworkWrites int
	NetworkWindow               time.Duration
}

// Bucket holds Size tokens and gains PerSecond; a Size of 0 is no limit.
type Bucket struct {
	Size      float64
	PerSecond float64
}

// AzureLimits returns the documented limits: ARM's reads 250 and 25 a second,
// writes and deletes 200 and 10 a second each; Microsoft.Network's 1,000 writes
// and deletes and 10,000 reads in five minutes.
func AzureLimits() *Limits {
	return &Limits{
		Reads:        Bucket{Size: 250, PerSecond: 25},
		Writes:       Bucket{Size: 200, PerSecond: 10},
		Deletes:      Bucket{Size: 200, PerSecond: 10},
		NetworkReads: 10_000, NetworkWrites: 1_000, NetworkWindow: 5 * time.Minute,
	}
}

type limiter struct {
	limits  *Limits
	buckets map[bucketKey]*level
	windows map[bucketKey]*window
}

type bucketKey struct{ subscription, caller, class string }

type level struct {
	tokens float64
	at     time.Time
}

// A window opens with its first request and counts until it closes. That it is
// fixed and not sliding is assumed.
type window struct {
	opened time.Time
	count  int
}

func newLimiter(limits *Limits) *limiter {
	return &limiter{limits: limits, buckets: map[bucketKey]*level{}, windows: map[bucketKey]*window{}}
}

// class is ARM's operation type. Polls count as reads (assumed).
func (x *exchange) class() string {
	switch x.req.Method {
	case http.MethodGet, http.MethodHead:
		return "reads"
	case http.MethodDelete:
		return "deletes"
	default:
		return "writes"
	}
}

func (l *Limits) bucket(class string) Bucket {
	switch class {
	case "reads":
		return l.Reads
	case "deletes":
		return l.Deletes
	default:
		return l.Writes
	}
}

// takeToken is ARM's own limit.
func (e *Emulator) takeToken(x *exchange) *Problem {
	if e.limits.limits == nil {
		return nil
	}
	class := x.class()
	bucket := e.limits.limits.bucket(class)
	if bucket.Size <= 0 {
		return nil
	}
	key := bucketKey{x.route.subscription, x.caller, class}
	l := e.limits.buckets[key]
	if l == nil {
		l = &level{tokens: bucket.Size, at: x.now}
		e.limits.buckets[key] = l
	}
	l.tokens = min(bucket.Size, l.tokens+x.now.Sub(l.at).Seconds()*bucket.PerSecond)
	l.at = x.now
	refused := l.tokens < 1
	if !refused {
		l.tokens--
	}
	x.header.Set("x-ms-ratelimit-remaining-subscription-"+class, strconv.Itoa(int(l.tokens)))
	if !refused {
		return nil
	}
	wait := 5 * time.Minute
	if bucket.PerSecond > 0 {
		wait = time.Duration((1 - l.tokens) / bucket.PerSecond * float64(time.Second))
	}
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "SubscriptionRequestsThrottled", RetryAfter: max(wait, 1),
		Message: fmt.Sprintf("Number of '%s' requests for subscription actor '%s' exceeded. Please try again after '%s' seconds after additional tokens are available.",
			class[:len(class)-1], x.caller, wholeSeconds(max(wait, 1))),
	}
}

// takeWindow is the network provider's limit. Its error code is assumed.
func (e *Emulator) takeWindow(x *exchange) *Problem {
	if e.limits.limits == nil || x.route.namespace != network {
		return nil
	}
	class, limit := "writes", e.limits.limits.NetworkWrites
	if x.class() == "reads" {
		class, limit = "reads", e.limits.limits.NetworkReads
	}
	length := e.limits.limits.NetworkWindow
	if limit <= 0 || length <= 0 {
		return nil
	}
	key := bucketKey{subscription: x.route.subscription, class: class}
	w := e.limits.windows[key]
	if w == nil || x.now.Sub(w.opened) >= length {
		w = &window{opened: x.now}
		e.limits.windows[key] = w
	}
	if w.count < limit {
		w.count++
		return nil
	}
	wait := w.opened.Add(length).Sub(x.now)
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: wait,
		Message: fmt.Sprintf("The network resource provider allows %d %s in %s for this subscription. Please try again after '%s' seconds.",
			limit, class, length, wholeSeconds(wait)),
	}
}
