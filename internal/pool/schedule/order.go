// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"maps"
	"math"
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
	namespace   string
	kind        kind
	inNextRound bool
	order       uint64
	retry       bool
	impact      Impact
	ready       time.Time
}

// Waits in intervals: a change is late after maxChangeWait, and a check becomes a late check; an admin state is late
// after maxAdminWait; a check ranks as a change after maxCheckWait. Late claims ignore impact.
const (
	maxChangeWait = 1
	maxAdminWait  = 10
	maxCheckWait  = 20
)

// isBefore orders the claims of one load balancer:
//
//  1. by kind (effectiveKind): admin states come first, because connections only drain until the node dies
//  2. one claim per namespace and round, so that a busy namespace delays others by one
//  3. late claims, so that the following starve none
//  4. unless late: first attempts, because the cause of a failure most likely persists; then impact
//  5. the namespaces' order, time and name, for a total order
//
// So a late change waits for at most a round for each earlier claim of its namespace, the current round, and one
// for each of its namespace's admin state attempts, at most one per pool and interval.
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
	c := claim{pool: g.Pool, namespace: g.Namespace, kind: kindChanges, inNextRound: g.InNextRound, order: g.Order, retry: g.Retry && g.Admin == nil, impact: g.impact, ready: g.ReadyAt(interval)}
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

// SelectPool picks the group to attempt, or returns when to call again; zero if only a new operation matters.
func SelectPool(groups []Group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, retryAt time.Time) {
	var best claim
	for _, g := range groups {
		switch c := g.newClaim(now, interval); {
		case c.ready.After(now):
			retryAt = ratelimit.MinTime(retryAt, c.ready)
		case !ok || c.isBefore(best, now, interval):
			best, ok = c, true
		}
	}
	return best.pool, ok, retryAt
}

// Impact is the traffic impact of a change on one pool.
type Impact struct {
	// Members that take new flows before and after the change, only before, or only after it.
	Serving, Stopping, Starting int
}

// lossRatio returns the share of new flows lost until the change is written. All pools weigh the same, because their
// traffic is unknown. If no member serves yet, everything is lost; if none will, a write saves nothing.
func (i Impact) lossRatio() (part, total int) {
	switch before, after := i.Serving+i.Stopping, i.Serving+i.Starting; {
	case after == 0:
		return 0, 1
	case before == 0:
		return 1, 1
	default:
		return i.Stopping, before
	}
}

func (i Impact) servingMembers() int {
	if i.Stopping == 0 && i.Starting == 0 {
		return math.MaxInt
	}
	return i.Serving
}

// compareImpact puts the highest loss first, because all writes take about the same time; then more leaving nodes,
// because a node waits for the last of its pools; then fewer serving members.
func (i Impact) compareImpact(other Impact) int {
	part, total := i.lossRatio()
	otherPart, otherTotal := other.lossRatio()
	return cmp.Or(cmp.Compare(otherPart*total, part*otherTotal), cmp.Compare(other.Stopping, i.Stopping), cmp.Compare(i.servingMembers(), other.servingMembers()))
}

// SelectWrites returns the pools to write together, in turn order, up to one that is overdue and has to be
// written separately. A selection that is too large takes some pools of each namespace.
func SelectWrites(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	var due, late []claim
	for _, g := range groups {
		if c := g.newClaim(now, interval); g.isDue(now, interval) {
			due = append(due, c)
		} else if !g.IsCheck() && now.Sub(c.ready) >= interval {
			late = append(late, c)
		}
	}
	slices.SortFunc(due, func(a, b claim) int {
		if a.isBefore(b, now, interval) {
			return -1
		}
		return 1
	})
	due, _ = ratelimit.SelectFair(due, func(c claim) string { return c.namespace }, maxOverlap)
	for _, c := range late {
		if at := slices.IndexFunc(due, func(other claim) bool { return c.isBefore(other, now, interval) }); at >= 0 {
			due = due[:at]
		}
	}
	keys := make([]lb.PoolKey, len(due))
	for i, c := range due {
		keys[i] = c.pool
	}
	return keys
}

func selectKeys(groups []Group, match func(Group) bool) (keys []lb.PoolKey) {
	for _, g := range groups {
		if match(g) {
			keys = append(keys, g.Pool)
		}
	}
	return keys
}

func (g Group) isDue(now time.Time, interval time.Duration) bool {
	return !g.isResync() && !g.history.MustBeAlone && (!g.ReadyAt(interval).After(now) || g.isDebouncing(now, interval))
}

const minSharedChecks = 3

// SelectChecks returns the pools to check by one read, due or debounced; none if there are too few.
func SelectChecks(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	due := selectKeys(groups, func(g Group) bool {
		return g.IsCheck() && !g.history.MustBeAlone && !g.history.NeedsRead && g.history.Writes.PendingEtag == "" &&
			(!g.ReadyAt(interval).After(now) || g.isDebouncing(now, interval))
	})
	if len(due) < minSharedChecks {
		return nil
	}
	slices.Sort(due)
	return due
}

// SelectUrgent returns the pools with new admin states that are due.
func SelectUrgent(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	return selectKeys(groups, func(g Group) bool { return g.isUrgent(now, interval) })
}

// SelectAdminSince selects the pools with admin states that are due, were queued after start and have not failed.
func SelectAdminSince(start time.Time) func([]Group, time.Time, time.Duration) []lb.PoolKey {
	return func(groups []Group, now time.Time, _ time.Duration) []lb.PoolKey {
		return selectKeys(groups, func(g Group) bool {
			return g.Admin != nil && g.Admin.FailedAttempts == 0 && g.Admin.QueuedAt.After(start) && !g.AdminRetryAt().After(now)
		})
	}
}

// SelectWaiting returns the due pools except checks.
func SelectWaiting(groups []Group, now time.Time, interval time.Duration) []lb.PoolKey {
	return selectKeys(groups, func(g Group) bool { return !g.IsCheck() && !g.ReadyAt(interval).After(now) })
}

func (g Group) isDebouncing(now time.Time, interval time.Duration) bool {
	return g.hasNewChange && !g.Retry && !ratelimit.MaxTime(g.NotBefore(), g.history.WaitUntil).After(now) &&
		!g.poolReadyAt(interval).After(now.Add(changeDebounce)) && !g.deferredUntil().After(now)
}
