// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// debounce is counted from the first change and never extended.
const debounce = 250 * time.Millisecond

// Group is a pool's operations as scheduled. If it has none it is a resync, due since firstQueued.
type Group struct {
	pool      lb.PoolKey
	Namespace string
	// Turn orders namespaces.
	Turn uint64
	// Later is true if the namespace had its turn in this round.
	Later bool
	fresh bool
	Retry bool
	// Hold is how long the changes of a busy pool wait for further ones.
	Hold time.Duration
	// Deferred is when the namespace's share allows the change, zero if it does, followed by the
	// reason.
	Deferred time.Time
	Why      string
	exempt   bool
	changed  int
	stake    Stake
	// fills is true for a newly created pool.
	fills bool
	// quiet is true if no operation has a known change.
	quiet       bool
	firstQueued time.Time
	ParkedUntil time.Time
	// Admin is the admin operation, or nil.
	Admin   *Operation
	history History
	Company time.Time
	ready   time.Time
}

// Changed returns the number of membership changes that have not failed.
func (g Group) Changed() int { return g.changed }

// Pool returns the group's pool.
func (g Group) Pool() lb.PoolKey { return g.pool }

// Summarize returns the group of a pool's operations. A new operation never makes a parked one due
// earlier.
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
			admin := *op // the queue's copy may change
			g.Admin = &admin
			continue
		case op.fresh():
			g.changed += 1 + op.absorbed
			g.fresh, g.fills = true, g.fills || op.New && h.GaveUp == "" && !h.Apart // a failing pool keeps its pace
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

// LookAt returns the group of a resync.
func LookAt(pool lb.PoolKey, namespace string, since time.Time, h History) Group {
	return Group{pool: pool, Namespace: namespace, quiet: true, firstQueued: since, history: h}
}

// ReadyAt returns when the membership or the admin states may be attempted, whichever is earlier.
func (g Group) ReadyAt(interval time.Duration) time.Time {
	switch {
	case g.Admin == nil:
		return g.memberAt(interval)
	case !g.changes():
		return g.adminAt()
	}
	return Earlier(g.memberAt(interval), g.adminAt())
}

// Due returns which of them may be attempted now.
func (g Group) Due(now time.Time, interval time.Duration) (member, admin bool) {
	return (g.changes() || g.Admin == nil) && !g.memberAt(interval).After(now), g.Admin != nil && !g.adminAt().After(now)
}

func (g Group) changes() bool { return g.fresh || g.Retry }

func (g Group) looks() bool { return !g.changes() && g.Admin == nil }

func (g Group) idle() bool { return g.looks() || g.quiet && !g.Retry && g.Admin == nil }

// Oldest returns when the oldest operation was queued.
func (g Group) Oldest() time.Time {
	if g.Admin == nil {
		return g.firstQueued
	}
	return Earlier(g.firstQueued, g.Admin.QueuedAt)
}

// adminAt ignores debouncing and pace.
func (g Group) adminAt() time.Time {
	return Later(Later(g.Earliest(), g.history.HoldUntil), Later(g.Admin.QueuedAt, g.Admin.againAt))
}

// urgent reports whether the admin operation ranks first. A failed one does not, nor one within an
// interval of the last: a flapping taint must not starve other pools.
func (g Group) urgent(now time.Time, interval time.Duration) bool {
	return g.Admin != nil && g.Admin.Tries == 0 && !g.adminAt().After(now) && !g.history.lastAdmin.After(now.Add(-interval))
}

func (g Group) memberAt(interval time.Duration) time.Time {
	return Later(g.ownAt(interval), g.deferredUntil())
}

// MaxDeferral bounds the wait for the namespace's share. With the maximum of pools per namespace
// and load balancer, it causes at most a third of Weir's writes.
const MaxDeferral = 10 * time.Minute

// deferredUntil is zero if the change does not wait for the namespace's share.
func (g Group) deferredUntil() time.Time {
	if g.Deferred.IsZero() {
		return time.Time{}
	}
	return Earlier(g.Deferred, g.firstQueued.Add(MaxDeferral))
}

// IsDeferred reports whether the group waits for the namespace's share.
func (g Group) IsDeferred(now time.Time, interval time.Duration) bool {
	until := g.deferredUntil()
	return until.After(now) && until.Equal(g.ReadyAt(interval))
}

// NeedsShare reports whether only the namespace's share may delay the change. These groups are
// ordered by age.
func (g Group) NeedsShare(now time.Time, interval time.Duration) bool {
	return g.changes() && !g.exempt && !g.idle() && !g.ownAt(interval).After(now.Add(debounce))
}

// Since returns when the first membership change was queued.
func (g Group) Since() time.Time { return g.firstQueued }

// ownAt ignores the namespace's share. Retry-After only ever delays.
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

// pacedUntil returns when the pool's pace allows a write, within an interval of the last; zero is
// any time.
func (g Group) pacedUntil(interval time.Duration) time.Time {
	if g.history.LastChange.IsZero() {
		return time.Time{}
	}
	return Earlier(g.history.LastChange.Add(interval), g.firstQueued.Add(g.Hold))
}

// Contends reports whether the pool has a change that its pace may delay.
func (g Group) Contends(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.Retry && !g.fills && g.history.LastChange.Add(interval).After(now)
}

// Earliest is the pool's Retry-After.
func (g Group) Earliest() time.Time { return Later(g.ParkedUntil, g.history.NotBefore) }

// EligibleAt is the Retry-After if it has not passed, or zero.
func (g Group) EligibleAt(now time.Time) time.Time {
	if at := g.Earliest(); at.After(now) {
		return at
	}
	return time.Time{}
}

// RetryAt returns when the membership may be retried, or zero without membership operations.
func (g Group) RetryAt(interval time.Duration) time.Time {
	if !g.changes() {
		return time.Time{}
	}
	return g.memberAt(interval)
}

// AdminRetryAt returns when the admin operation may be retried, or zero without one.
func (g Group) AdminRetryAt() time.Time {
	if g.Admin == nil {
		return time.Time{}
	}
	return g.adminAt()
}

// Paced reports whether the group only waits for its pace.
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

// Earlier returns the earlier of two times; a zero time is ignored.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
