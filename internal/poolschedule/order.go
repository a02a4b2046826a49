// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// kind ranks what a pool is to be written for.
type kind int

// The kinds, most urgent first.
const (
	adminStates kind = iota // nodes that leave or return; first attempt only
	changes // membership changes, and all retries
	oldLooks // checks that have waited for an interval
	again // changes of a pool written for a change within the interval
	looks // no known change
)

// claim is a pool ready to be attempted, ordered among others of its load balancer.
type claim struct {
	pool lb.PoolKey
	kind kind
	// later is true if the namespace had its turn in this round; turn orders namespaces within a
	// round.
	later bool
	turn  uint64
	// retry is true if all waiting operations have failed before.
	retry bool
	stake Stake
	// ready is when it became ready.
	ready time.Time
}

// The number of intervals after which a claim no longer yields to those with more impact. After
// looksWait intervals a check ranks as a change.
const (
	changesWait = 1
	statesWait  = 10
	looksWait   = 20
)

// before orders the claims of one load balancer, by:
//
//   - Kind: admin states, because connections can only drain until the node dies; then changes;
//     then pools written within the interval; then checks. A check that has waited for an interval
//     goes before pools that change all the time.
//   - Round: one claim per namespace and round, so that a namespace with a thousand changes delays
//     another by one per round.
//   - Overdue claims, oldest first, so that the rules below starve none.
//   - First attempts before retries, whose cause most likely persists.
//   - Impact (see Stake): dead members that still receive flows before additional members, and
//     pools without serving members before all. With equal impact, fewest serving members first.
//   - Turn, time ready, and name, to make the order total.
//
// This bounds waiting. A change that is ready for an interval waits for at most one round for each
// earlier claim of its namespace, the current round, and one for each admin state pass of its
// namespace, of which a pool has one per interval. Admin states are bounded likewise from ten
// intervals on, checks from twenty.
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

// rank returns the kind, raised for checks that have waited long enough.
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

// claim returns the group's claim.
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
		c.stake = Stake{Returns: 1} // it serves no flows until then
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

// Admit picks the group to attempt now. If there is none, askAt is when to call again: zero if only
// a new operation can change the result.
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
