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

// gate is what 429s have closed, by the stage's own reading of them: the reads or the
// writes of a subscription, or a load balancer.
type gate struct {
	since time.Time
	// until is what an answer named, and excuse until when the process may take it for
	// closed: an answer that names no time leaves that to it.
	until, excuse time.Time
	// begun counts the attempts since it has opened.
	begun int
}

// quotaCodes and lockCode are the stage's own idea of what closes a gate.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

const (
	lockCode = "RetryableErrorDueToAnotherOperation"
	// unnamed is how long a gate stays closed if the 429 names no time.
	unnamed = 10 * time.Second
)

// quotas are the gates of a subscription, and how far apart attempts are when one has
// opened: as a write comes back, or the reads of an attempt.
var quotas = []struct {
	name  string
	apart time.Duration
}{
	{"writes of ", 300 * time.Millisecond},
	{"reads of ", 200 * time.Millisecond},
}

// gatesOf names the gates that a call to a pool meets. An attempt begins with a read
// and waits for all of them.
func (s *Stage) gatesOf(k *pool, kind string) []string {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	gates := []string{"writes of " + sub, string(k.id.LoadBalancer.Key())}
	if kind == http.MethodGet {
		gates = append(gates, "reads of "+sub)
	}
	return gates
}

// askedFor is the stage's own reading of a Retry-After: scripts name seconds, and what else
// stands there names nothing.
func askedFor(h http.Header, now time.Time) (until time.Time, named bool) {
	n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 32)
	if err != nil {
		return time.Time{}, false
	}
	return now.Add(time.Duration(n) * time.Second), true //nolint:gosec // 32 bits of seconds are 136 years
}

// closes closes what a 429 says is closed; one that the process may overlook excuses it
// alone. The caller holds s.mu.
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

// close never opens a gate earlier than it would have. The zero time is one that nobody
// has named.
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

// gatesOpen returns when all gates are open that an attempt waits for; zero if none was
// closed. The caller holds s.mu.
func (s *Stage) gatesOpen(k *pool) time.Time {
	var open time.Time
	for _, name := range s.gatesOf(k, http.MethodGet) {
		if g := s.gates[name]; g != nil {
			open = later(open, g.excuse)
		}
	}
	return open
}

// leaveLasts is how long before an attempt the gates may have been asked if the lease is
// waited for in between.
const leaveLasts = time.Second

// passes says what is wrong with an attempt that begins: a gate is closed, or has just
// opened and others went through. The caller holds s.mu.
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
