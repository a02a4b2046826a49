// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"golang.org/x/time/rate"
)

// Documented limits per identity and region. Microsoft.Network allows 1,000 writes in 5 minutes,
// less than Resource Manager's 10 per second, and 25 reads per second in bursts of 250. The cost of
// an attempt is assumed: one write, one read, some polls and the final read.
const (
	quotaWriteRate  = 1000.0 / (5 * 60)
	quotaWriteBurst = 200
	attemptWrites   = 1
	quotaReadRate   = 25
	quotaReadBurst  = 250
	attemptReads    = 5
)

// reservationTTL is how long an unused turn remains reserved. Longer reservations would cause bursts.
const reservationTTL = 5 * time.Second

// quotaLimiter spreads attempts after a quota's gate opened: all workers at once would close it again. It
// is not safe for concurrent use.
type quotaLimiter struct {
	bucket *rate.Limiter
	cost   int
	// reservations is keyed by resource.
	reservations map[string]time.Time
}

// newQuotaLimiter returns the limiter of the write or read quota, exhausted until a time. At that time one
// attempt may start.
func newQuotaLimiter(until time.Time, writes bool) *quotaLimiter {
	perSecond, saved, cost := rate.Limit(quotaReadRate), quotaReadBurst, attemptReads
	if writes {
		perSecond, saved, cost = quotaWriteRate, quotaWriteBurst, attemptWrites
	}
	t := &quotaLimiter{bucket: rate.NewLimiter(perSecond, saved), cost: cost, reservations: map[string]time.Time{}}
	t.bucket.ReserveN(until, saved-cost)
	return t
}

// reserveAttempt returns when the next attempt for a load balancer may start.
func (q *quotaLimiter) reserveAttempt(id string, now time.Time) time.Time {
	at, ok := q.reservations[id]
	if !ok || now.Sub(at) > reservationTTL {
		at = now.Add(q.bucket.ReserveN(now, q.cost).DelayFrom(now))
		q.reservations[id] = at
	}
	return at
}

// isRefilled reports whether the quota has refilled.
func (q *quotaLimiter) isRefilled(now time.Time) bool {
	return q.bucket.TokensAt(now) >= float64(q.bucket.Burst())
}

// useReservation uses the turn of a load balancer.
func (q *quotaLimiter) useReservation(id string) { delete(q.reservations, id) }
