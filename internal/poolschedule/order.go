// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"time"

	"weir.dev/weir/internal/lb"
)

// looksWait is how many intervals a look for drift stands back behind changes. Many looks
// come due behind a gate, and nobody waits for them.
const looksWait = 20

// rank orders what is ready: admin states, changes, looks. A look that has waited long enough is
// as good as a change.
func (g Group) rank(now time.Time, interval time.Duration) int {
	switch {
	case g.urgent(now, interval):
		return 0
	case g.idle() && now.Sub(g.ready) < looksWait*interval:
		return 2
	}
	return 1
}

// age orders the changes of one namespace: fresh work, then retries. What has waited for an
// interval goes before all that has not, so that no kind of work starves another; and so does a
// pool that has just been made, for it serves nobody until it is filled.
func (g Group) age(now time.Time, interval time.Duration) int {
	switch {
	case now.Sub(g.ready) >= interval, g.urgent(now, interval), g.fills:
		return 0
	case g.Retry && g.Admin == nil:
		return 2
	}
	return 1
}

// loses orders changes of admin states, see Stake.
func (g Group) loses(other Group) int {
	if g.Admin == nil || other.Admin == nil {
		return 0
	}
	return g.Admin.Stake.compare(other.Admin.Stake)
}

// before orders groups that are ready: by rank, then by whose turn it is, so that a namespace
// with a thousand changes holds a neighbour up by one of them. Within a namespace they go by
// age, then by what is lost while they wait, then by how long they are ready, then by name so
// that the same input gives the same order.
func (g Group) before(other Group, now time.Time, interval time.Duration) bool {
	return cmp.Or(
		cmp.Compare(g.rank(now, interval), other.rank(now, interval)),
		cmp.Compare(g.Turn, other.Turn),
		cmp.Compare(g.age(now, interval), other.age(now, interval)),
		g.loses(other),
		g.ready.Compare(other.ready),
		cmp.Compare(g.pool, other.pool),
	) < 0
}

// Admit picks the group to attempt now; if there is none, it returns when to ask
// again: zero if only a new operation can change the answer.
func Admit(groups []Group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, askAt time.Time) {
	var best Group
	for _, g := range groups {
		g.ready = g.ReadyAt(now, interval)
		switch {
		case g.ready.After(now):
			askAt = Earlier(askAt, g.ready)
		case !ok || g.before(best, now, interval):
			best, ok = g, true
		}
	}
	return best.pool, ok, askAt
}
