// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"time"

	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// Backlog counts what waits in all workers.
type Backlog struct {
	// Operations includes parked ones.
	Operations int
	Parked     int
	// OldestQueuedAt is of unsettled operations; zero if none.
	OldestQueuedAt time.Time
}

func (q *queue) addBacklog(b Backlog, now time.Time) Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.Operations += q.depth
	for _, w := range q.pools {
		if !w.inFlight && len(w.ops) == 0 { // true of most pools
			continue
		}
		oldest := time.Time{}
		if w.inFlight {
			oldest = w.oldestQueuedAt
		}
		if g := schedule.NewGroup("", w.ops, w.history); len(w.ops) > 0 {
			oldest = ratelimit.MinTime(oldest, g.OldestQueued())
			if ratelimit.MaxTime(g.ParkedUntil, w.history.NotBefore).After(now) {
				b.Parked++
			}
		}
		b.OldestQueuedAt = ratelimit.MinTime(b.OldestQueuedAt, oldest)
	}
	return b
}
