// SPDX-License-Identifier: Apache-2.0

package poolupdate

import "time"

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
		oldest := time.Time{}
		if w.inFlight {
			oldest = w.oldest
		}
		if g := summarize("", w.ops, w.history); len(w.ops) > 0 {
			oldest = earlier(oldest, g.oldest())
			if later(g.parkedUntil, w.history.notBefore).After(now) {
				b.Parked++
			}
		}
		b.Oldest = earlier(b.Oldest, oldest)
	}
	return b
}
