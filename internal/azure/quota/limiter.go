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
	writeRate  = 1000.0 / (5 * 60)
	writeBurst = 200
	writeCost  = 1
	readRate   = 25
	readBurst  = 250
	readCost   = 5
)

// reservationTTL is how long an unused turn remains reserved. Longer reservations would cause bursts.
const reservationTTL = 5 * time.Second

// Limiter spreads attempts after a quota's gate opened: all workers at once would close it again. It
// is not safe for concurrent use.
type Limiter struct {
	bucket *rate.Limiter
	cost   int
	// reservations is keyed by resource.
	reservations map[string]time.Time
}

// NewLimiter returns the turns of the write or read quota, exhausted until a time. At that time one
// attempt may start.
func NewLimiter(until time.Time, writes bool) *Limiter {
	perSecond, saved, cost := rate.Limit(readRate), readBurst, readCost
	if writes {
		perSecond, saved, cost = writeRate, writeBurst, writeCost
	}
	t := &Limiter{bucket: rate.NewLimiter(perSecond, saved), cost: cost, reservations: map[string]time.Time{}}
	t.bucket.ReserveN(until, saved-cost)
	return t
}

// ReserveAttempt returns when the next attempt for a load balancer may start.
func (t *Limiter) ReserveAttempt(id string, now time.Time) time.Time {
	at, ok := t.reservations[id]
	if !ok || now.Sub(at) > reservationTTL {
		at = now.Add(t.bucket.ReserveN(now, t.cost).DelayFrom(now))
		t.reservations[id] = at
	}
	return at
}

// IsRefilled reports whether the quota has refilled.
func (t *Limiter) IsRefilled(now time.Time) bool {
	return t.bucket.TokensAt(now) >= float64(t.bucket.Burst())
}

// UseReservation uses the turn of a load balancer.
func (t *Limiter) UseReservation(id string) { delete(t.reservations, id) }
