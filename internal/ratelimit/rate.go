// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"math"
	"time"
)

// changeRate is a pool's rate of changes, as two decaying counts: one over the interval, for current
// contention, and one over the window, for demand.
type changeRate struct {
	recentCount, windowCount float64
	at                       time.Time
	since                    time.Time
	namespace                string
}

// maxRecent caps pools that change faster than they can be written.
const maxRecent = 60

// mergeInterval is the time within which changes count as one: they often share a cause.
const mergeInterval = 250 * time.Millisecond

// minActive is the count of an inactive pool.
const minActive = 0.05

func (c changeRate) decayTo(now time.Time, interval time.Duration) changeRate {
	passed := max(0, now.Sub(c.at))
	return changeRate{
		recentCount: c.recentCount * math.Exp(-float64(passed)/float64(interval)),
		windowCount: c.windowCount * math.Exp(-float64(passed)/float64(windowLength)),
		at:          now,
		since:       c.since,

		namespace: c.namespace,
	}
}

func (c changeRate) addChange(now time.Time, interval time.Duration) changeRate {
	if since := now.Sub(c.at); since >= 0 && since < mergeInterval {
		return c
	}
	if c = c.decayTo(now, interval); c.recentCount < minActive {
		c.recentCount, c.since = 0, now
	}
	c.recentCount = min(c.recentCount+1, maxRecent)
	c.windowCount = min(c.windowCount+1, windowLength.Seconds()/interval.Seconds()) // more is never owed
	return c
}

// shareWeight divides what is left. A pool with λ changes and a write every w seconds has λ·w/2 changes
// waiting; for a given number of writes, the sum is minimal if w is proportional to 1/√λ.
func (c changeRate) shareWeight() float64 { return math.Sqrt(max(c.recentCount, minActive)) }

// demandFactor is the expected number of further changes per change. Underestimating it costs a write
// beyond the share.
const demandFactor = 1.5

// reservedRate is the expected number of forced writes per second, at most one per interval.
func (c changeRate) reservedRate(interval time.Duration) float64 {
	return min(1/interval.Seconds(), demandFactor*c.windowCount/windowLength.Seconds())
}

// changeInterval is the time between recent changes: an interval if only one is known, zero if they are too
// frequent to distinguish.
func (c changeRate) changeInterval(interval time.Duration) time.Duration {
	if c.recentCount > maxRecent/2 {
		return 0
	}
	first := math.Exp(-float64(c.at.Sub(c.since)) / float64(interval)) // decayed first change, which has no predecessor
	if c.recentCount-first < minActive {
		return interval
	}
	return time.Duration(float64(interval) * (1 - first) / (c.recentCount - first))
}
