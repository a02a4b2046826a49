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

// gate is a restriction after a 429, computed independently: the reads or writes of a subscription,
// or a load balancer.
type gate struct {
	since time.Time
	// until is the Retry-After; excuse is until when the process may assume it closed, because an
	// answer without a time leaves the choice to the process.
	until, excuse time.Time
	// begun counts the attempts since it opened.
	begun int
}

// quotaCodes and lockCode restate what closes a gate.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

const (
	lockCode = "RetryableErrorDueToAnotherOperation"
	// unnamed is how long a gate stays closed if the 429 has no Retry-After.
	unnamed = 10 * time.Second
)

// quotas are the gates of a subscription and the minimum distance of attempts after reopening: the
// refill time of one write, or of one attempt's reads.
var quotas = []struct {
	name  string
	apart time.Duration
}{
	{"writes of ", 300 * time.Millisecond},
	{"reads of ", 200 * time.Millisecond},
}

// gatesOf returns the gates of a call to a pool. An attempt begins with a read and waits for all
// gates.
func (s *Stage) gatesOf(k *pool, kind string) []string {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	gates := []string{"writes of " + sub, string(k.id.LoadBalancer.Key())}
	if kind == http.MethodGet {
		gates = append(gates, "reads of "+sub)
	}
	return gates
}

// askedFor parses a Retry-After independently: scripts use seconds, and other values give no time.
func askedFor(h http.Header, now time.Time) (until time.Time, named bool) {
	n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 32)
	if err != nil {
		return time.Time{}, false
	}
	return now.Add(time.Duration(n) * time.Second), true //nolint:gosec // 32 bits of seconds are 136 years
}

// closes closes the gate of a 429. A gate that the process may ignore only excuses it. The caller
// holds s.mu.
func (s *Stage) closes(k *pool, c call, codes []string, until time.Time, must bool) {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	for _, code := range codes {
		switch {
		case code == lockCode:
			s.close(string(k.id.LoadBalancer.Key()), until, must)
		case slices.Contains(quotaCodes, code) && c.kind == http.MethodPut:
			s.close("writes of "+sub, until, must)
		case slices.Contains(quotaCodes, code):
			s.close("reads of "+sub, until, must)
		}
	}
}

// close closes a gate, never shortening it. A zero time means that the answer has no Retry-After.
func (s *Stage) close(name string, until time.Time, must bool) {
	now := time.Now()
	g := s.gates[name]
	if g == nil || !g.excuse.After(now) {
		g = &gate{since: now}
		s.gates[name] = g
	}
	if until.IsZero() {
		until, must = now.Add(unnamed), false
	}
	g.excuse = later(g.excuse, until)
	if must && until.After(g.until) {
		g.until, g.begun = until, 0
	}
}

// gatesOpen returns when all gates of an attempt are open; zero if none was closed. The caller
// holds s.mu.
func (s *Stage) gatesOpen(k *pool) time.Time {
	var open time.Time
	for _, name := range s.gatesOf(k, http.MethodGet) {
		if g := s.gates[name]; g != nil {
			open = later(open, g.excuse)
		}
	}
	return open
}

// leaveLasts is the maximum time between the gate check and the attempt if the lease is acquired in
// between.
const leaveLasts = time.Second

// passes returns the gate violations of a new attempt: a gate is closed, or just opened and let
// others through. The caller holds s.mu.
func (s *Stage) passes(k *pool, now time.Time) []string {
	var wrong []string
	patience := time.Duration(0)
	if s.opts.LeaseTerm > 0 {
		patience = leaveLasts
	}
	for _, name := range s.gatesOf(k, http.MethodGet) {
		if g := s.gates[name]; g != nil && g.until.After(now) && now.Sub(g.since) > patience {
			wrong = append(wrong, fmt.Sprintf("an attempt of %s begins at %s although %s are closed since %s", k.id.Name, s.clock(now), name, s.clock(g.since)))
		}
	}
	for _, q := range quotas {
		g := s.gates[q.name+strings.ToLower(k.id.LoadBalancer.SubscriptionID)]
		if g == nil || g.until.IsZero() || g.until.After(now) {
			continue
		}
		if since := now.Sub(g.until); since < time.Duration(g.begun)*q.apart-10*time.Millisecond {
			wrong = append(wrong, fmt.Sprintf("attempt %d begins %s after %s%s have opened", g.begun+1, since, q.name, k.id.LoadBalancer.SubscriptionID))
		}
		g.begun++
	}
	return wrong
}
