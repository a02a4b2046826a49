// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// throttleGate is a restriction after a 429, computed independently: the reads or writes of a subscription,
// or a load balancer.
type throttleGate struct {
	since time.Time
	// The Retry-After, and the time until which the process may assume the gate closed: an answer
	// without a time leaves the choice to the process.
	until, excusedUntil time.Time
	// attempts counts the attempts since it opened.
	attempts int
}

// What closes a gate, restated independently.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

const (
	lockCode = "RetryableErrorDueToAnotherOperation"
	// defaultGateTime is how long a gate is closed if the 429 has no Retry-After.
	defaultGateTime = 10 * time.Second
)

// quotaGates are the gates of a subscription and the minimum distance of attempts after reopening: the
// refill time of one write, or of one attempt's reads.
var quotaGates = []struct {
	name  string
	apart time.Duration
}{
	{"writes of ", 300 * time.Millisecond},
	{"reads of ", 200 * time.Millisecond},
}

// gateNames returns the gates of a call to a pool. An attempt begins with a read and waits for all
// gates.
func (s *Stage) gateNames(k *pool, kind string) []string {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	gates := []string{"writes of " + sub, string(k.id.LoadBalancer.Key())}
	if kind == http.MethodGet {
		gates = append(gates, "reads of "+sub)
	}
	return gates
}

// parseRetryAfter parses a Retry-After independently: scripts use seconds, and other values give no time.
func parseRetryAfter(h http.Header, now time.Time) (until time.Time, named bool) {
	n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 32)
	if err != nil {
		return time.Time{}, false
	}
	return now.Add(time.Duration(n) * time.Second), true //nolint:gosec // 32 bits of seconds are 136 years
}

// applyThrottle closes the gate of a 429. A gate that the process may ignore only excuses it. The caller
// holds s.mu.
func (s *Stage) applyThrottle(k *pool, c call, codes []string, until time.Time, must bool) {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	for _, code := range codes {
		switch {
		case code == lockCode:
			s.closeGate(string(k.id.LoadBalancer.Key()), until, must)
		case slices.Contains(quotaCodes, code) && c.kind == http.MethodPut:
			s.closeGate("writes of "+sub, until, must)
		case slices.Contains(quotaCodes, code):
			s.closeGate("reads of "+sub, until, must)
		}
	}
}

// closeGate closes a gate, never shortening it. A zero time means that the answer has no Retry-After.
func (s *Stage) closeGate(name string, until time.Time, must bool) {
	now := time.Now()
	g := s.throttleGates[name]
	if g == nil || !g.excusedUntil.After(now) {
		g = &throttleGate{since: now}
		s.throttleGates[name] = g
	}
	if until.IsZero() {
		until, must = now.Add(defaultGateTime), false
	}
	g.excusedUntil = latest(g.excusedUntil, until)
	if must && until.After(g.until) {
		g.until, g.attempts = until, 0
	}
}

// gatesOpenAt returns when all gates of an attempt are open; zero if none was closed. The caller
// holds s.mu.
func (s *Stage) gatesOpenAt(k *pool) time.Time {
	var open time.Time
	for _, name := range s.gateNames(k, http.MethodGet) {
		if g := s.throttleGates[name]; g != nil {
			open = latest(open, g.excusedUntil)
		}
	}
	return open
}

// gateCheckAge is the maximum time between the gate check and the attempt if the lease is acquired in
// between.
const gateCheckAge = time.Second

// checkGates returns the gate violations of a new attempt: a gate is closed, or just opened and let
// others through. The caller holds s.mu.
func (s *Stage) checkGates(k *pool, now time.Time) []string {
	var failures []string
	timeout := time.Duration(0)
	if s.opts.LeaseTerm > 0 {
		timeout = gateCheckAge
	}
	for _, name := range s.gateNames(k, http.MethodGet) {
		if g := s.throttleGates[name]; g != nil && g.until.After(now) && now.Sub(g.since) > timeout {
			failures = append(failures, fmt.Sprintf("an attempt of %s begins at %s although %s are closed since %s", k.id.Name, s.formatTime(now), name, s.formatTime(g.since)))
		}
	}
	for _, q := range quotaGates {
		g := s.throttleGates[q.name+strings.ToLower(k.id.LoadBalancer.SubscriptionID)]
		if g == nil || g.until.IsZero() || g.until.After(now) {
			continue
		}
		if since := now.Sub(g.until); since < time.Duration(g.attempts)*q.apart-10*time.Millisecond {
			failures = append(failures, fmt.Sprintf("attempt %d begins %s after %s%s have opened", g.attempts+1, since, q.name, k.id.LoadBalancer.SubscriptionID))
		}
		g.attempts++
	}
	return failures
}
