// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"math"
	"time"
)

// activity is how often a pool has changed: two counts that fade, one as slowly as the
// interval, which says who contends for what is left now, and one as slowly as the window,
// which says how much each is expected to need.
type activity struct {
	lately, often float64
	at            time.Time
	// since is when it began to change.
	since     time.Time
	namespace string
}

// mostLately bounds what a pool weighs that changes more often than anybody can write it.
const mostLately = 60

// atOnce is how far apart changes are that count as one: what happens once often comes in several.
const atOnce = 250 * time.Millisecond

// faint is a count that is as good as none.
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
	a.often = min(a.often+1, windowLasts.Seconds()/interval.Seconds()) // more is owed to none
	return a
}

// weight is the pool's part when pools divide what is left. Of pools that are written again
// and again, one that changes λ times a second and is written every w seconds has λ·w/2
// changes waiting; for a given number of writes their sum is least where w goes with 1/√λ.
func (a activity) weight() float64 { return math.Sqrt(max(a.lately, faint)) }

// goesOn is how many changes of a pool are expected, for each that it has had: half of its time is over as
// a rule, and a write that was counted on too late is one beyond the share.
const goesOn = 1.5

// owed is how many writes a second the bound may force for the pool: one an interval at most, if it
// goes on to change.
func (a activity) owed(interval time.Duration) float64 {
	return min(1/interval.Seconds(), goesOn*a.often/windowLasts.Seconds())
}

// every is how far apart the changes of the pool are, lately: an interval if only one is known, zero once
// they are more than can be told apart.
func (a activity) every(interval time.Duration) time.Duration {
	if a.lately > mostLately/2 {
		return 0
	}
	first := math.Exp(-float64(a.at.Sub(a.since)) / float64(interval)) // what is left of its first change, which came after nothing
	if a.lately-first < faint {
		return interval
	}
	return time.Duration(float64(interval) * (1 - first) / (a.lately - first))
}
