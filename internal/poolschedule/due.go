// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// debounce is how long a fresh change waits for company. It is counted from
// the first operation and never extended.
const debounce = 250 * time.Millisecond

// Group is the operations of one pool, as far as admission looks at them. One that is
// neither fresh nor a retry, and has no admin operation, has none: the pool is due to be
// looked at for drift, since firstQueued.
type Group struct {
	pool lb.PoolKey
	// Namespace is that of its BackendPool, and turn when that has its next.
	Namespace string
	Turn      uint64
	// Later is true if the namespace had its turn in this round.
	Later bool
	fresh bool
	Retry bool
	// Hold is how long a change of a pool that was written within the interval waits for others of
	// the pool, by what is left of Azure's quotas. Zero is no time at all.
	Hold time.Duration
	// Deferred is when the namespace has a write left for its change, and Why why it has none now; zero if it has.
	Deferred time.Time
	Why      string
	// exempt is true if one of its changes never waits for that.
	exempt bool
	// changed counts the changes of the membership that wait.
	changed int
	// stake is what its change of the membership is about, as far as that is known.
	stake Stake
	// fills is true if the pool has just been made, and has to be filled.
	fills bool
	// quiet is true if no change is known to stand behind any of its operations.
	quiet       bool
	firstQueued time.Time
	ParkedUntil time.Time
	// Admin is its admin operation, if there is one.
	Admin   *Operation
	history History
	// Company is until when a group that nobody waits for waits for others of its load balancer.
	Company time.Time
	// ready is when the group may be attempted, once admission has looked.
	ready time.Time
}

// Changed counts its changes of the membership that wait, and have not failed.
func (g Group) Changed() int { return g.changed }

// Pool is whose group it is.
func (g Group) Pool() lb.PoolKey { return g.pool }

// Summarize builds the group of a pool's operations. The most restrictive member
// decides for all: a fresh operation never takes a parked one along early.
func Summarize(pool lb.PoolKey, ops []Operation, h History) Group {
	g := Group{pool: pool, history: h, quiet: true}
	for i := range ops {
		op := &ops[i]
		g.Namespace = op.Ref.Namespace
		g.quiet = g.quiet && op.Looks() && !op.Differs
		g.exempt = g.exempt || op.Exempt
		switch {
		case op.Drift:
			continue
		case op.Admin:
			admin := *op // the queue's may change
			g.Admin = &admin
			continue
		case op.fresh():
			g.changed += 1 + op.absorbed
			g.fresh, g.fills = true, g.fills || op.New && h.GaveUp == "" && !h.Apart // one that fails keeps its pace
		default:
			g.Retry = true
		}
		if op.Stake.compare(g.stake) < 0 {
			g.stake = op.Stake
		}
		if g.firstQueued.IsZero() || op.QueuedAt.Before(g.firstQueued) {
			g.firstQueued = op.QueuedAt
		}
		g.ParkedUntil = Later(g.ParkedUntil, op.NextEligibleAt)
	}
	return g
}

// LookAt is the group of a pool that is due to be looked at for drift since a time.
func LookAt(pool lb.PoolKey, namespace string, since time.Time, h History) Group {
	return Group{pool: pool, Namespace: namespace, quiet: true, firstQueued: since, history: h}
}

// ReadyAt returns when the group may be attempted: when the first of its two kinds may.
func (g Group) ReadyAt(interval time.Duration) time.Time {
	switch {
	case g.Admin == nil:
		return g.memberAt(interval)
	case !g.changes():
		return g.adminAt()
	}
	return Earlier(g.memberAt(interval), g.adminAt())
}

// Due returns which of its two kinds may be attempted now.
func (g Group) Due(now time.Time, interval time.Duration) (member, admin bool) {
	return (g.changes() || g.Admin == nil) && !g.memberAt(interval).After(now), g.Admin != nil && !g.adminAt().After(now)
}

// changes reports whether the group has operations of the membership.
func (g Group) changes() bool { return g.fresh || g.Retry }

// looks reports whether the pool is only looked at.
func (g Group) looks() bool { return !g.changes() && g.Admin == nil }

// idle reports whether nobody waits for the group: it is a look, for drift or at a pool that was
// missing, or level, when it was seen last.
func (g Group) idle() bool { return g.looks() || g.quiet && !g.Retry && g.Admin == nil }

// Oldest is since when the group waits.
func (g Group) Oldest() time.Time {
	if g.Admin == nil {
		return g.firstQueued
	}
	return Earlier(g.firstQueued, g.Admin.QueuedAt)
}

// adminAt returns when the admin operation may be attempted. It waits for no company and no
// pace, but for what it has met itself.
func (g Group) adminAt() time.Time {
	return Later(Later(g.Earliest(), g.history.HoldUntil), Later(g.Admin.QueuedAt, g.Admin.againAt))
}

// urgent reports whether the admin operation goes ahead of everything. One that has failed
// stands in line with the rest, as does one of a pool that had such an attempt within the
// interval: a taint that flaps starves nobody.
func (g Group) urgent(now time.Time, interval time.Duration) bool {
	return g.Admin != nil && g.Admin.Tries == 0 && !g.adminAt().After(now) && !g.history.lastAdmin.After(now.Add(-interval))
}

// memberAt returns when the membership may be applied.
func (g Group) memberAt(interval time.Duration) time.Time {
	return Later(g.ownAt(interval), g.deferredUntil())
}

// MaxDeferral is the longest time that a change waits for the share of its namespace. As many pools as a namespace may
// have on a load balancer then need no more than a third of Weir's writes.
const MaxDeferral = 10 * time.Minute

// deferredUntil returns until when the change waits for the share of its namespace; zero if it does not.
func (g Group) deferredUntil() time.Time {
	if g.Deferred.IsZero() {
		return time.Time{}
	}
	return Earlier(g.Deferred, g.firstQueued.Add(MaxDeferral))
}

// IsDeferred reports whether the group waits for the share of its namespace.
func (g Group) IsDeferred(now time.Time, interval time.Duration) bool {
	until := g.deferredUntil()
	return until.After(now) && until.Equal(g.ReadyAt(interval))
}

// NeedsShare reports whether the change is due but for the share of its namespace. Since orders such groups.
func (g Group) NeedsShare(now time.Time, interval time.Duration) bool {
	return g.changes() && !g.exempt && !g.idle() && !g.ownAt(interval).After(now.Add(debounce))
}

// Since returns when the first change of the membership was queued.
func (g Group) Since() time.Time { return g.firstQueued }

// ownAt returns when the membership may be applied as far as the pool decides. Retry-After only ever delays.
func (g Group) ownAt(interval time.Duration) time.Time {
	t := Later(g.Earliest(), g.history.HoldUntil)
	switch {
	case g.Retry:
		return Later(t, g.history.LastAttempt.Add(interval))
	case g.fills:
		return Later(t, g.firstQueued)
	case g.fresh:
		t = Later(t, g.firstQueued.Add(debounce))
		if g.quiet {
			t = Later(t, g.Company)
		}
		return Later(t, g.pacedUntil(interval))
	}
	return Later(t, g.firstQueued)
}

// pacedUntil is when the pool's pace lets it be written again: no later than an interval after
// its last write, whatever is left. Zero is any time.
func (g Group) pacedUntil(interval time.Duration) time.Time {
	if g.history.LastChange.IsZero() {
		return time.Time{}
	}
	return Earlier(g.history.LastChange.Add(interval), g.firstQueued.Add(g.Hold))
}

// Contends reports whether the pool has a change that its pace may hold up at a time.
func (g Group) Contends(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !g.fills && g.history.LastChange.Add(interval).After(now)
}

// Earliest is the time before which Azure wants no call for the pool.
func (g Group) Earliest() time.Time { return Later(g.ParkedUntil, g.history.NotBefore) }

// EligibleAt is earliest if that is still to come, else zero.
func (g Group) EligibleAt(now time.Time) time.Time {
	if at := g.Earliest(); at.After(now) {
		return at
	}
	return time.Time{}
}

// RetryAt is memberAt of a group that may have no operation of the membership left: then it
// is zero.
func (g Group) RetryAt(interval time.Duration) time.Time {
	if !g.changes() {
		return time.Time{}
	}
	return g.memberAt(interval)
}

// AdminRetryAt is adminAt of a group that may have no admin operation left.
func (g Group) AdminRetryAt() time.Time {
	if g.Admin == nil {
		return time.Time{}
	}
	return g.adminAt()
}

// Paced reports whether the group waits for its pace, and for nothing else.
func (g Group) Paced(now time.Time, interval time.Duration) bool {
	return g.Contends(now, interval) && g.pacedUntil(interval).Equal(g.ReadyAt(interval))
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Earlier returns the earlier of two times; the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
