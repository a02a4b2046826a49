// SPDX-License-Identifier: Apache-2.0

// Package quota schedules callers after an Azure quota was exhausted. It reads no clock.
package quota

import (
	"time"

	"golang.org/x/time/rate"
)

// Documented limits per identity and region. Microsoft.Network allows 1,000 writes in 5 minutes,
// less than Resource Manager's 10 per second, and 25 reads per second in bursts of 250. The cost of
// an attempt is assumed: one write, one read, some polls and the final read.
const (
	writesPerSecond = 1000.0 / (5 * 60)
	writesSaved     = 200
	writesAnAttempt = 1
	readsPerSecond  = 25
	readsSaved      = 250
	readsAnAttempt  = 5
)

// turnHolds is how long an unused turn remains reserved. Longer reservations would cause bursts.
const turnHolds = 5 * time.Second

// Turns spreads attempts after a quota's gate opened: all workers at once would close it again. It
// is not safe for concurrent use.
type Turns struct {
	limiter *rate.Limiter
	cost    int
	// of is keyed by resource.
	of map[string]time.Time
}

// Until returns the turns of the write or read quota, exhausted until a time. At that time one
// attempt may start.
func Until(until time.Time, writes bool) *Turns {
	perSecond, saved, cost := rate.Limit(readsPerSecond), readsSaved, readsAnAttempt
	if writes {
		perSecond, saved, cost = writesPerSecond, writesSaved, writesAnAttempt
	}
	t := &Turns{limiter: rate.NewLimiter(perSecond, saved), cost: cost, of: map[string]time.Time{}}
	t.limiter.ReserveN(until, saved-cost)
	return t
}

// At returns when the next attempt for a load balancer may start.
func (t *Turns) At(id string, now time.Time) time.Time {
	at, ok := t.of[id]
	if !ok || now.Sub(at) > turnHolds {
		at = now.Add(t.limiter.ReserveN(now, t.cost).DelayFrom(now))
		t.of[id] = at
	}
	return at
}

// Over reports whether the quota has refilled.
func (t *Turns) Over(now time.Time) bool {
	return t.limiter.TokensAt(now) >= float64(t.limiter.Burst())
}

// Take uses the turn of a load balancer.
func (t *Turns) Take(id string) { delete(t.of, id) }
