// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"math"
	"time"
)

// activity is a pool's rate of changes, as two decaying counts: one over the interval, for current
// contention, and one over the window, for demand.
type activity struct {
	lately, often float64
	at            time.Time
	since         time.Time
	namespace     string
}

// mostLately caps pools that change faster than they can be written.
const mostLately = 60

// atOnce is the time within which changes count as one: they often share a cause.
const atOnce = 250 * time.Millisecond

// faint is the count of an inactive pool.
const faint = 0.05

func (a activity) when(now time.Time, interval time.Duration) activity {
	passed := max(0, now.Sub(a.at))
	return activity{
		lately: a.lately * math.Exp(-float64(passed)/float64(interval)),
		often:  a.often * math.Exp(-float64(passed)/float64(windowLasts)),
		at:     now,
		since:  a.since,

		namespace: a.namespace,
	}
}

func (a activity) changed(now time.Time, interval time.Duration) activity {
	if since := now.Sub(a.at); since >= 0 && since < atOnce {
		return a
	}
	if a = a.when(now, interval); a.lately < faint {
		a.lately, a.since = 0, now
	}
	a.lately = min(a.lately+1, mostLately)
	a.often = min(a.often+1, windowLasts.Seconds()/interval.Seconds()) // more is never owed
	return a
}

// weight divides what is left. A pool with λ changes and a write every w seconds has λ·w/2 changes
// waiting; for a given number of writes, the sum is minimal if w is proportional to 1/√λ.
func (a activity) weight() float64 { return math.Sqrt(max(a.lately, faint)) }

// goesOn is the expected number of further changes per change. Underestimating it costs a write
// beyond the share.
const goesOn = 1.5

// owed is the expected number of forced writes per second, at most one per interval.
func (a activity) owed(interval time.Duration) float64 {
	return min(1/interval.Seconds(), goesOn*a.often/windowLasts.Seconds())
}

// every is the time between recent changes: an interval if only one is known, zero if they are too
// frequent to distinguish.
func (a activity) every(interval time.Duration) time.Duration {
	if a.lately > mostLately/2 {
		return 0
	}
	first := math.Exp(-float64(a.at.Sub(a.since)) / float64(interval)) // decayed first change, which has no predecessor
	if a.lately-first < faint {
		return interval
	}
	return time.Duration(float64(interval) * (1 - first) / (a.lately - first))
}
