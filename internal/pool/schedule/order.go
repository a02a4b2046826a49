// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

type kind int

// In order of urgency.
const (
	kindAdminStates     kind = iota // nodes that leave or return; first attempt only
	kindChanges                     // membership changes, and all retries
	kindLateChecks                  // checks that have waited for an interval
	kindRepeatedChanges             // changes of a pool written for a change within the interval
	kindChecks                      // no known change
)

type claim struct {
	pool        lb.PoolKey
	kind        kind
	inNextRound bool
	order       uint64
	retry       bool
	impact      Impact
	ready       time.Time
}

// Intervals after which a claim ignores impact; a check then ranks as a change.
const (
	maxChangeWait = 1
	maxAdminWait  = 10
	maxCheckWait  = 20
)

// isBefore orders the claims of one load balancer, by:
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
func (c claim) isBefore(other claim, now time.Time, interval time.Duration) bool {
	if by := cmp.Or(cmp.Compare(c.effectiveKind(now, interval), other.effectiveKind(now, interval)), compareBool(c.inNextRound, other.inNextRound)); by != 0 {
		return by < 0
	}
	old, otherOld := c.isLate(now, interval), other.isLate(now, interval)
	if by := compareBool(otherOld, old); by != 0 {
		return by < 0
	}
	if !old {
		if by := cmp.Or(compareBool(c.retry, other.retry), c.impact.compareImpact(other.impact)); by != 0 {
			return by < 0
		}
	}
	return cmp.Or(cmp.Compare(c.order, other.order), c.ready.Compare(other.ready), cmp.Compare(c.pool, other.pool)) < 0
}

func (c claim) effectiveKind(now time.Time, interval time.Duration) kind {
	switch wait := now.Sub(c.ready); {
	case c.kind == kindChecks && wait >= maxCheckWait*interval:
		return kindChanges
	case c.kind == kindChecks && wait >= maxChangeWait*interval:
		return kindLateChecks
	}
	return c.kind
}

func (c claim) isLate(now time.Time, interval time.Duration) bool {
	wait := time.Duration(maxChangeWait)
	if c.kind == kindAdminStates {
		wait = maxAdminWait
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

func (g Group) newClaim(now time.Time, interval time.Duration) claim {
	c := claim{pool: g.Pool, kind: kindChanges, inNextRound: g.InNextRound, order: g.Order, retry: g.Retry && g.Admin == nil, impact: g.impact, ready: g.ready}
	switch {
	case g.isUrgent(now, interval):
		c.kind, c.impact = kindAdminStates, g.Admin.Impact
	case g.IsCheck():
		c.kind = kindChecks
	case g.Admin == nil && g.NeedsPace(now, interval):
		c.kind = kindRepeatedChanges
	}
	if g.needsFill {
		c.impact = Impact{Starting: 1} // it serves no flows until then
	}
	return c
}

func (g Group) isBefore(other Group, now time.Time, interval time.Duration) bool {
	return g.newClaim(now, interval).isBefore(other.newClaim(now, interval), now, interval)
}

// ReadyNamespaces returns the namespaces with ready groups.
func ReadyNamespaces(groups []Group, now time.Time, interval time.Duration) []string {
	ready := map[string]bool{}
	for _, g := range groups {
		if !g.ReadyAt(interval).After(now) {
			ready[g.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(ready))
}

// AdmitPool picks the group to attempt, or returns when to call again; zero if only a new operation matters.
func AdmitPool(groups []Group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, retryAt time.Time) {
	var best Group
	for _, g := range groups {
		g.ready = g.ReadyAt(interval)
		switch {
		case g.ready.After(now):
			retryAt = ratelimit.MinTime(retryAt, g.ready)
		case !ok || g.isBefore(best, now, interval):
			best, ok = g, true
		}
	}
	return best.Pool, ok, retryAt
}
