// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/poolschedule"
)

// Backlog is what waits in all lanes.
type Backlog struct {
	// Operations counts those that wait, parked ones included.
	Operations int
	// Parked counts the pools that wait for a Retry-After.
	Parked int
	// Oldest is when the oldest operation was queued that is not settled, one under
	// way included; zero if there is none.
	Oldest time.Time
}

// backlog adds what waits here to b. Parked means by a Retry-After that is not over.
func (q *queue) backlog(b Backlog, now time.Time) Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.Operations += q.depth
	for _, w := range q.pools {
		if !w.inFlight && len(w.ops) == 0 { // most pools
			continue
		}
		oldest := time.Time{}
		if w.inFlight {
			oldest = w.oldest
		}
		if g := poolschedule.Summarize("", w.ops, w.history); len(w.ops) > 0 {
			oldest = poolschedule.Earlier(oldest, g.Oldest())
			if poolschedule.Later(g.ParkedUntil, w.history.NotBefore).After(now) {
				b.Parked++
			}
		}
		b.Oldest = poolschedule.Earlier(b.Oldest, oldest)
	}
	return b
}
