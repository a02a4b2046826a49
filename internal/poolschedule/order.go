// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// kind ranks claims.
type kind int

// In order of urgency.
const (
	adminStates kind = iota // nodes that leave or return; first attempt only
	changes                 // membership changes, and all retries
	oldLooks                // checks that have waited for an interval
	again                   // changes of a pool written for a change within the interval
	looks                   // no known change
)

// claim is a pool that is ready, ordered among others of its load balancer.
type claim struct {
	pool lb.PoolKey
	kind kind
	// later is true if the namespace had its turn in this round.
	later bool
	turn  uint64
	// retry is true if all operations have failed before.
	retry bool
	stake Stake
	ready time.Time
}

// The number of intervals after which a claim ignores impact. After the last one a check ranks as a
// change.
const (
	changesWait = 1
	statesWait  = 10
	looksWait   = 20
)

// before orders the claims of one load balancer, by:
//
//   - Kind: admin states, because connections only drain until the node dies; changes; pools
//     written within the interval; checks. A check that is overdue ranks before pools that change
//     all the time.
//   - Round: one claim per namespace and round, so that a busy namespace delays others by one.
//   - Overdue claims, so that the following rules starve none.
//   - First attempts before retries: their cause most likely persists.
//   - Traffic impact.
//   - The namespaces' order, time and name, for a total order.
//
// So an overdue change waits for at most a round for each earlier claim of its namespace, the
// current round, and one for each of its namespace's admin state attempts, at most one per pool and
// interval. Admin states are bounded likewise after ten intervals, checks after twenty.
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

// rank raises overdue checks.
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

// Ready returns the namespaces with ready groups.
func Ready(groups []Group, now time.Time, interval time.Duration) []string {
	ready := map[string]bool{}
	for _, g := range groups {
		if !g.ReadyAt(interval).After(now) {
			ready[g.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(ready))
}

// Admit picks the group to attempt. If there is none, retryAt is when to call again; zero if only a
// new operation can change that.
func Admit(groups []Group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, retryAt time.Time) {
	var best Group
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		switch {
		case g.ready.After(now):
			retryAt = Earlier(retryAt, g.ready)
		case !ok || g.before(best, now, interval):
			best, ok = g, true
		}
	}
	return best.pool, ok, retryAt
}
