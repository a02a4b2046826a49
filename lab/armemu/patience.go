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
}

// awaited is the stage that notes who comes too early. It refuses nobody.
func (e *Emulator) awaited(x *exchange) *Problem {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.patience.arrives(x, time.Now())
	return nil
}

// arrives notes a call that comes too early.
func (p *patience) arrives(x *exchange, now time.Time) {
	a, ok := p.asked[x.askedOf()]
	if !ok || !a.until.After(now) || now.Sub(a.at) < onItsWay {
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
	p.asked[x.askedOf()] = askedFor{at: now, until: until, status: r.status}
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
// one before.
func (e *Emulator) ForgetRetryAfter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.patience.asked)
}
