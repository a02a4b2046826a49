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
	// Requests may be in flight when a rejection arrives.
	inFlightGrace = time.Second
	// Limits the memory of a long-lived server.
	maxEarlyCalls, maxRetryAfters = 100, 10_000
)

// retryAfterTracker tracks Retry-After headers of errors, per caller and path, and the calls that ignored
// them.
type retryAfterTracker struct {
	active map[retryAfterKey]retryAfterEntry
	early  []string
}

type retryAfterKey struct{ caller, path string }

type retryAfterEntry struct {
	at, until time.Time
	status    int
	// Other request classes have separate limits. The emulator's own limits count early calls
	// themselves.
	class      string
	isScripted bool
	// the client restarted
	ignored bool
}

// enforceRetryAfter rejects early calls after a scripted 429 with a new Retry-After.
func (e *Emulator) enforceRetryAfter(x *exchange) *Problem {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	a, ok := e.retryAfters.active[x.retryAfterKey()]
	if !ok || !a.until.After(now) {
		return nil
	}
	e.retryAfters.recordEarly(x, a, now)
	if a.status != http.StatusTooManyRequests || !a.isScripted || a.class != x.requestClass() {
		return nil
	}
	return &Problem{
		Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: a.until.Sub(now), Gateway: true,
		Message: fmt.Sprintf("The request was not processed because it came before the retry time. Please try again after '%s' seconds.", wholeSeconds(a.until.Sub(now))),
	}
}

func (t *retryAfterTracker) recordEarly(x *exchange, a retryAfterEntry, now time.Time) {
	if a.ignored || now.Sub(a.at) < inFlightGrace {
		return
	}
	x.call.Early = a.until.Sub(now).String()
	if len(t.early) < maxEarlyCalls {
		t.early = append(t.early, fmt.Sprintf("%s %s at %s: %s before the Retry-After of a %d, which was answered %s ago",
			x.req.Method, x.req.URL.Path, now.UTC().Format(time.RFC3339), x.call.Early, a.status, now.Sub(a.at)))
	}
}

func (t *retryAfterTracker) recordRetryAfter(x *exchange, r *response, now time.Time) {
	until, named := parseRetryAfter(r.header, now)
	if r.closeConnection || r.status < http.StatusBadRequest || !named || !until.After(t.active[x.retryAfterKey()].until) {
		return
	}
	if t.active == nil {
		t.active = map[retryAfterKey]retryAfterEntry{}
	}
	if len(t.active) >= maxRetryAfters {
		maps.DeleteFunc(t.active, func(_ retryAfterKey, a retryAfterEntry) bool { return !a.until.After(now) })
	}
	t.active[x.retryAfterKey()] = retryAfterEntry{at: now, until: until, status: r.status, class: x.requestClass(), isScripted: x.fault != nil}
}

func (x *exchange) retryAfterKey() retryAfterKey {
	return retryAfterKey{caller: x.callerID, path: strings.ToLower(x.req.URL.EscapedPath())}
}

func parseRetryAfter(h http.Header, now time.Time) (until time.Time, named bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return now.Add(time.Duration(min(seconds, 86_400)) * time.Second), seconds > 0
	}
	until, err := http.ParseTime(value)
	return until, err == nil
}

// EarlyCalls returns the first 100 early calls. Tests fail on any.
func (e *Emulator) EarlyCalls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.retryAfters.early...)
}

// ResetRetryAfter is for a restarted client. Its early calls are rejected but not recorded.
func (e *Emulator) ResetRetryAfter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for of, a := range e.retryAfters.active {
		a.ignored = true
		e.retryAfters.active[of] = a
	}
}
