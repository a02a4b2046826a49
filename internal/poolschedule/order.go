// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// kind is what a pool is to be written for.
type kind int

// The kinds, the most urgent first.
const (
	adminStates kind = iota // nodes that leave, or return; its first attempt
	changes                 // members that come and go, and whatever is tried again
	oldLooks                // looks that wait for an interval
	again                   // changes of a pool that was written for one within the interval
	looks                   // nothing is known to have changed
)

// claim is a pool that is ready to be attempted, among others of its load balancer.
type claim struct {
	pool lb.PoolKey
	kind kind
	// later is true if the pool's namespace had its turn in this round, and turn orders
	// namespaces within one.
	later bool
	turn  uint64
	// retry is true if all that waits has failed before.
	retry bool
	stake Stake
	// ready is since when it is.
	ready time.Time
}

// How many intervals a claim gives way to others that lose more. A look stands back behind
// changes for as long as looksWait; then it is one.
const (
	changesWait = 1
	statesWait  = 10
	looksWait   = 20
)

// before orders the claims of one load balancer at a time. In this order:
//
//   - Admin states: their nodes are announced to die, and the time until then is all that
//     connections have to drain. Then changes; then those of pools that were written within
//     the interval, which have had theirs; then looks, for which nobody waits. A look that waits
//     for an interval goes before such a pool: it may change all the time.
//   - Round by round, one of each namespace, so that one with a thousand changes holds a
//     neighbour up by one of them in each round.
//   - What has waited for long, in the order in which it came: what follows is no reason to
//     starve anybody.
//   - What has not failed yet: a retry waits for Azure, and most likely still does.
//   - What loses most while it waits, see Stake: dead members that flows run into before new
//     ones that nothing is lost without, and pools that serve nobody before all.
//   - Of equals the one with the fewest members that serve: the others carry more.
//   - Whose turn it is, since when it is ready, and by name, so that the same claims are
//     always in the same order.
//
// So nobody starves: a claim for changes that is ready for an interval waits for at most one
// more round for each of its own namespace that was ready before it, and one for the round
// that was under way, plus one for each pass for admin states that its namespace had meanwhile.
// Of these a pool has one an interval; they wait for others like them, likewise, from ten
// intervals on. A look waits as a change does from twenty intervals on.
func (c claim) before(other claim, now time.Time, interval time.Duration) bool {
	if by := cmp.Or(cmp.Compare(c.rank(now, interval), other.rank(now, interval)), compareBool(c.later, other.later)); by != 0 {
		return by < 0
	}
	old, otherOld := c.overdue(now, interval), other.overdue(now, interval)
	if by := compareBool(otherOld, old); by != 0 {
		return by < 0
	}
	if !old {
		if by := cmp.Or(compareBool(c.retry, other.retry), c.stake.compare(other.stake)); by != 0 {
			return by < 0
		}
	}
	return cmp.Or(cmp.Compare(c.turn, other.turn), c.ready.Compare(other.ready), cmp.Compare(c.pool, other.pool)) < 0
}

// rank is the kind, but of a look that has waited long enough.
func (c claim) rank(now time.Time, interval time.Duration) kind {
	switch wait := now.Sub(c.ready); {
	case c.kind == looks && wait >= looksWait*interval:
		return changes
	case c.kind == looks && wait >= changesWait*interval:
		return oldLooks
	}
	return c.kind
}

func (c claim) overdue(now time.Time, interval time.Duration) bool {
	wait := time.Duration(changesWait)
	if c.kind == adminStates {
		wait = statesWait
	}
	return now.Sub(c.ready) >= wait*interval
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// claim is the group among others that are ready.
func (g Group) claim(now time.Time, interval time.Duration) claim {
	c := claim{pool: g.pool, kind: changes, later: g.Later, turn: g.Turn, retry: g.Retry && g.Admin == nil, stake: g.stake, ready: g.ready}
	switch {
	case g.urgent(now, interval):
		c.kind, c.stake = adminStates, g.Admin.Stake
	case g.idle():
		c.kind = looks
	case g.Admin == nil && g.Contends(now, interval):
		c.kind = again
	}
	if g.fills {
		c.stake = Stake{Returns: 1} // it serves nobody until then
	}
	return c
}

func (g Group) before(other Group, now time.Time, interval time.Duration) bool {
	return g.claim(now, interval).before(other.claim(now, interval), now, interval)
}

// Ready returns the namespaces of the groups that may be attempted now.
func Ready(groups []Group, now time.Time, interval time.Duration) []string {
	ready := map[string]bool{}
	for _, g := range groups {
		if !g.ReadyAt(interval).After(now) {
			ready[g.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(ready))
}

// Admit picks the group to attempt now; if there is none, it returns when to ask
// again: zero if only a new operation can change the answer.
func Admit(groups []Group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, askAt time.Time) {
	var best Group
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		switch {
		case g.ready.After(now):
			askAt = Earlier(askAt, g.ready)
		case !ok || g.before(best, now, interval):
			best, ok = g, true
		}
	}
	return best.pool, ok, askAt
}
