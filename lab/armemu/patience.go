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
	// onItsWay is for how long after a refusal a call may come that was sent before the
	// refusal arrived.
	onItsWay = time.Second
	// keptHasty and keptAsked bound the memory of a long-lived server.
	keptHasty, keptAsked = 100, 10_000
)

// patience is what the emulator has asked for with Retry-After, and who did not wait. A
// refusal's Retry-After is for all calls of that caller to that path: Azure says that an
// application waits so long before it sends the next request. That of an answer to a
// poll that succeeds is advice, and is not in it.
type patience struct {
	asked map[askedOf]askedFor
	hasty []string
}

// askedOf is a caller, by its token, and a path.
type askedOf struct{ caller, path string }

type askedFor struct {
	at, until time.Time
	status    int
	// class is that of the request: other requests have limits of their own. isScripted says that a fault
	// script made the answer; the emulator's own limits count early calls themselves.
	class      string
	isScripted bool
	// isForgotten says that the client that was refused is gone.
	isForgotten bool
}

// awaited is the stage that notes who comes too early. It refuses a call before the Retry-After of a
// scripted 429 with another Retry-After.
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

// arrives notes a call that comes too early.
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

// refuses notes what an answer asks for.
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

// retryAfter reads the header's seconds or date.
func retryAfter(h http.Header, now time.Time) (until time.Time, named bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return now.Add(time.Duration(min(seconds, 86_400)) * time.Second), seconds > 0
	}
	until, err := http.ParseTime(value)
	return until, err == nil
}

// Hasty returns the calls that came before a Retry-After that their path had answered, the
// first hundred of them. A client that respects Azure makes none: tests fail over any.
func (e *Emulator) Hasty() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.patience.hasty...)
}

// ForgetRetryAfter is for a client that begins anew, and cannot know what was asked of the
// one before. Its early calls are refused and not recorded.
func (e *Emulator) ForgetRetryAfter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for of, a := range e.patience.asked {
		a.isForgotten = true
		e.patience.asked[of] = a
	}
}
