// SPDX-License-Identifier: Apache-2.0

// Package quota says who goes first when a quota of Azure comes back. It reads no clock.
package quota

import (
	"time"

	"golang.org/x/time/rate"
)

// What Azure gives back after a quota was used up. Writes: Microsoft.Network takes
// 1,000 in 5 minutes, which is tighter than Resource Manager's 10 a second; reads:
// 25 a second, up to 250 saved (all documented, and counted by Azure for each
// identity and region). What one attempt costs is an assumption: a write, and a read,
// some polls and the read of the result.
const (
	writesPerSecond = 1000.0 / (5 * 60)
	writesSaved     = 200
	writesAnAttempt = 1
	readsPerSecond  = 25
	readsSaved      = 250
	readsAnAttempt  = 5
)

// turnHolds is how long a turn is kept for a load balancer that does not come: many that
// were kept would be a herd in the end.
const turnHolds = 5 * time.Second

// Turns hands out attempts after a quota's gate has opened, at the rate at which the
// quota comes back: all lanes at once would only close it again. It is not safe for concurrent use.
type Turns struct {
	limiter *rate.Limiter
	cost    int
	// of holds the turn of each load balancer, or other resource, that has one and has not taken it.
	of map[string]time.Time
}

// Until returns the turns of a quota, that of writes or that of reads, which is used up until a time; at that time
// there is enough for one attempt.
func Until(until time.Time, writes bool) *Turns {
	perSecond, saved, cost := rate.Limit(readsPerSecond), readsSaved, readsAnAttempt
	if writes {
		perSecond, saved, cost = writesPerSecond, writesSaved, writesAnAttempt
	}
	t := &Turns{limiter: rate.NewLimiter(perSecond, saved), cost: cost, of: map[string]time.Time{}}
	t.limiter.ReserveN(until, saved-cost)
	return t
}

// At returns when a load balancer's next attempt may start.
func (t *Turns) At(id string, now time.Time) time.Time {
	at, ok := t.of[id]
	if !ok || now.Sub(at) > turnHolds {
		at = now.Add(t.limiter.ReserveN(now, t.cost).DelayFrom(now))
		t.of[id] = at
	}
	return at
}

// Over reports whether the quota is as good as untouched again.
func (t *Turns) Over(now time.Time) bool {
	return t.limiter.TokensAt(now) >= float64(t.limiter.Burst())
}

// Take has a load balancer take its turn.
func (t *Turns) Take(id string) { delete(t.of, id) }
