// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
)

const (
	// wholeFrom is how many pools have to be due for a write of the whole load balancer.
	wholeFrom = 3
	// mostTogether bounds the pools of one write: each is recorded before, and nobody waits for
	// the records of a thousand.
	mostTogether = 100
)

// together returns the pools to attempt by one write of the load balancer, and for which
// changes that may be; none if they are too few, or if such writes are not to be made.
func (l *lane) together(now time.Time) ([]lb.PoolKey, leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) {
		return nil, leaves{}
	}
	may := l.may(now)
	if may.none() {
		return nil, may
	}
	due := l.queue.together(now, l.cfg.Interval, may)
	if len(due) < wholeFrom {
		return nil, may
	}
	return due, may
}

// may asks for which changes pools may be written together.
func (l *lane) may(now time.Time) leaves {
	addresses, states := l.verdicts.May(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
	return leaves{addresses, states}
}

// together returns the pools with changes that are due, or that only wait for company: where
// they are too many for one write, some of each namespace.
func (q *queue) together(now time.Time, interval time.Duration, may leaves) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []group
	for key, w := range q.busy {
		g := w.group(key)
		if !g.looks() && !w.history.apart && may.lets(g) && (!g.readyAt(now, interval).After(now) || g.gathers(now, interval)) {
			g.ready, g.turn = g.readyAt(now, interval), q.line.Turn(g.namespace)
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b group) int {
		if a.before(b, now, interval) {
			return -1
		}
		return 1
	})
	dealt, _ := turns.Deal(due, func(g group) string { return g.namespace }, mostTogether)
	keys := make([]lb.PoolKey, len(dealt))
	for i, g := range dealt {
		keys[i] = g.pool
	}
	slices.Sort(keys)
	return keys
}

// gathers reports whether the group waits for company, and for nothing else.
func (g group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.retry && !later(g.earliest(), g.history.holdUntil).After(now) &&
		!g.memberAt(now, interval).After(now.Add(debounce))
}
