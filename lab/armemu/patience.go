// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// onItsWay is the grace period for requests already sent when a rejection arrives.
	onItsWay = time.Second
	// keptHasty and keptAsked limit the memory of a long-lived server.
	keptHasty, keptAsked = 100, 10_000
)

// patience tracks Retry-After headers and the calls that ignored them. A Retry-After on an error
// applies to all calls of that caller to that path. On a successful poll it is only advice and not
// tracked.
type patience struct {
	asked map[askedOf]askedFor
	hasty []string
}

// askedOf is a caller, by digest of its token, and a path.
type askedOf struct{ caller, path string }

type askedFor struct {
	at, until time.Time
	status    int
	// class is the request class: other classes have separate limits. isScripted reports that the
	// fault script sent it; the emulator's own limits count early calls themselves.
	class      string
	isScripted bool
	// isForgotten reports that the client restarted since.
	isForgotten bool
}

// awaited is the stage that records early calls. It rejects a call before the Retry-After of a
// scripted 429 with a new Retry-After.
func (e *Emulator) awaited(x *exchange) *Problem {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	a, ok := e.patience.asked[x.askedOf()]
	if !ok || !a.until.After(now) {
		return nil
	}
	e.patience.arrives(x, a, now)
	if a.status != http.StatusTooManyRequests || !a.isScripted || a.class != x.class() {
		return nil
	}
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: a.until.Sub(now), Gateway: true,
		Message: fmt.Sprintf("The request was not processed because it came before the retry time. Please try again after '%s' seconds.", wholeSeconds(a.until.Sub(now))),
	}
}

// arrives records an early call.
func (p *patience) arrives(x *exchange, a askedFor, now time.Time) {
	if a.isForgotten || now.Sub(a.at) < onItsWay {
		return
	}
	x.call.Early = a.until.Sub(now).String()
	if len(p.hasty) < keptHasty {
		p.hasty = append(p.hasty, fmt.Sprintf("%s %s at %s: %s before the Retry-After of a %d, which was answered %s ago",
			x.req.Method, x.req.URL.Path, now.UTC().Format(time.RFC3339), x.call.Early, a.status, now.Sub(a.at)))
	}
}

// refuses records the Retry-After of a response.
func (p *patience) refuses(x *exchange, r *reply, now time.Time) {
	until, named := retryAfter(r.header, now)
	if r.drop || r.status < http.StatusBadRequest || !named || !until.After(p.asked[x.askedOf()].until) {
		return
	}
	if p.asked == nil {
		p.asked = map[askedOf]askedFor{}
	}
	if len(p.asked) >= keptAsked {
		maps.DeleteFunc(p.asked, func(_ askedOf, a askedFor) bool { return !a.until.After(now) })
	}
	p.asked[x.askedOf()] = askedFor{at: now, until: until, status: r.status, class: x.class(), isScripted: x.fault != nil}
}

func (x *exchange) askedOf() askedOf {
	return askedOf{caller: x.caller, path: strings.ToLower(x.req.URL.EscapedPath())}
}

// retryAfter parses the header as seconds or a date.
func retryAfter(h http.Header, now time.Time) (until time.Time, named bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return now.Add(time.Duration(min(seconds, 86_400)) * time.Second), seconds > 0
	}
	until, err := http.ParseTime(value)
	return until, err == nil
}

// Hasty returns the first 100 calls sent before a Retry-After of their path had passed. Tests fail
// on any.
func (e *Emulator) Hasty() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.patience.hasty...)
}

// ForgetRetryAfter is for a restarted client that cannot know earlier Retry-Afters. Its early calls
// are rejected but not recorded.
func (e *Emulator) ForgetRetryAfter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for of, a := range e.patience.asked {
		a.isForgotten = true
		e.patience.asked[of] = a
	}
}
