// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"cmp"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// Waiting is a pool that waits for an attempt.
type Waiting struct {
	Ref   schedule.Ref
	Pool  lb.PoolID
	Cause Cause
	// CheckOnly is true if no change is known; the pool's status stands.
	CheckOnly bool
	Admin     bool
	// Since is when the wait was seen; later reports supersede it.
	Since time.Time
	// Until is when an attempt is possible; zero if unknown.
	Until   time.Time
	Message string
}

// Cause is what a change waits for.
type Cause string

// The causes.
const (
	CauseGate       Cause = "Gate"       // Azure accepts no requests for the subscription or the load balancer
	CauseRetryAfter Cause = "RetryAfter" // Azure sent a Retry-After for this pool
	CauseLease      Cause = "Lease"      // another controller holds the lease
	CausePace       Cause = "Pace"       // the pool is busy, or a quota recovers gradually
	CauseShare      Cause = "Share"      // the namespace has used up its share of writes
	CauseBehind     Cause = "Behind"     // another write on the load balancer comes first
)

func (c Cause) isRoutine() bool { return c == CausePace || c == CauseBehind }

type blocker struct {
	retryAt time.Time // zero if nothing blocks
	until   time.Time
	cause   Cause
	message string
}

const minReportedWait = time.Second

func (q *queue) changedWaits(blocked blocker, now time.Time) []Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	var waiting []Waiting
	for _, g := range q.waitingGroups(now) {
		p := q.withOps[g.Pool]
		if wait, ok := p.currentWait(g, blocked, now, q.interval); ok && p.isNewWait(wait, q.interval) {
			p.reportedWait = &wait
			waiting = append(waiting, wait)
		}
	}
	slices.SortFunc(waiting, func(a, b Waiting) int { return cmp.Compare(a.Pool.Key(), b.Pool.Key()) })
	return waiting
}

func (q *queue) behindWait(key lb.PoolKey) (Waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now() // not before the end of the last attempt: its report would supersede it
	p := q.pools[key]
	if p == nil || p.inFlight || p.reportedWait != nil || !p.reportsBehind() {
		return Waiting{}, false
	}
	p.reportedWait = &Waiting{Ref: p.ops[0].Ref, Pool: p.ops[0].Pool, Cause: CauseBehind, Since: now}
	return *p.reportedWait, true
}
func (p *poolEntry) reportsBehind() bool {
	g := p.newGroup("", schedule.Debouncer{})
	return p.hasChange() && !g.Retry && (g.Admin == nil || g.Admin.FailedAttempts == 0)
}

func (p *poolEntry) hasChange() bool {
	return slices.ContainsFunc(p.ops, func(op schedule.Operation) bool { return !op.IsCheck() })
}

// currentWait returns what a pool waits for. It omits waits after a failure, which the report of that attempt has.
func (p *poolEntry) currentWait(g schedule.Group, blocked blocker, now time.Time, interval time.Duration) (Waiting, bool) {
	if len(p.ops) == 0 || p.inFlight {
		return Waiting{}, false // a resync is no change
	}
	ready := g.ReadyAt(interval)
	wait := Waiting{
		Ref: p.ops[0].Ref, Pool: p.ops[0].Pool, CheckOnly: !p.hasChange(), Admin: g.Admin != nil, Since: now,
		Cause: blocked.cause, Until: blocked.until, Message: blocked.message,
	}
	switch {
	case blocked.until.After(ready):
	case blocked.cause == CauseBehind && !p.reportsBehind():
		return Waiting{}, false
	case blocked.cause != "" && blocked.until.IsZero() && ready.Sub(now) < minReportedWait:
		return wait, true
	case g.IsDeferred(now, interval):
		wait.Cause, wait.Until, wait.Message = CauseShare, ready, g.DeferReason
	case g.Retry, g.Admin != nil && g.Admin.FailedAttempts > 0:
		return Waiting{}, false
	case g.NotBefore().Equal(ready):
		wait.Cause, wait.Until, wait.Message = CauseRetryAfter, ready, ""
	case g.IsPaced(now, interval):
		wait.Cause, wait.Until, wait.Message = CausePace, ready, ""
	default:
		return Waiting{}, false
	}
	return wait, wait.Until.Sub(now) >= minReportedWait
}

// isNewWait reports Pace and Behind once, because their times keep moving.
func (p *poolEntry) isNewWait(wait Waiting, interval time.Duration) bool {
	var before Waiting
	if p.reportedWait != nil {
		before = *p.reportedWait
	}
	moved := wait.Until.Sub(before.Until)
	if wait.Cause == CauseShare && before.Cause == CauseShare {
		return moved >= interval // its text contains figures that always change
	}
	if wait.Cause.isRoutine() && before.Cause.isRoutine() {
		return moved >= interval && !before.Until.IsZero()
	}
	return wait.Cause != before.Cause || wait.CheckOnly != before.CheckOnly || wait.Until.IsZero() && wait.Message != before.Message || moved >= minReportedWait
}
