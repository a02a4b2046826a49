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
	fresh     bool
	Retry     bool
	// fills is true if the pool has just been made, and has to be filled.
	fills bool
	// quiet is true if no change is known to stand behind any of its operations.
	quiet       bool
	firstQueued time.Time
	ParkedUntil time.Time
	// Admin is its admin operation, if there is one.
	Admin   *Operation
	history History
	// ready is when the group may be attempted, once admission has looked.
	ready time.Time
}

// Summarize builds the group of a pool's operations. The most restrictive member
// decides for all: a fresh operation never takes a parked one along early.
func Summarize(pool lb.PoolKey, ops []Operation, h History) Group {
	g := Group{pool: pool, history: h, quiet: true}
	for _, op := range ops {
		g.Namespace = op.Ref.Namespace
		g.quiet = g.quiet && op.Looks()
		switch {
		case op.Drift:
			continue
		case op.Admin:
			g.Admin = &op
			continue
		case op.fresh():
			g.fresh, g.fills = true, g.fills || op.New && h.GaveUp == "" && !h.Apart // one that fails keeps its pace
		default:
			g.Retry = true
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
func (g Group) ReadyAt(now time.Time, interval time.Duration) time.Time {
	switch {
	case g.Admin == nil:
		return g.memberAt(now, interval)
	case !g.changes():
		return g.adminAt()
	}
	return Earlier(g.memberAt(now, interval), g.adminAt())
}

// Due returns which of its two kinds may be attempted now.
func (g Group) Due(now time.Time, interval time.Duration) (member, admin bool) {
	return (g.changes() || g.Admin == nil) && !g.memberAt(now, interval).After(now), g.Admin != nil && !g.adminAt().After(now)
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

// memberAt returns when the membership may be applied. Retry-After only ever delays.
func (g Group) memberAt(now time.Time, interval time.Duration) time.Time {
	t := Later(g.Earliest(), g.history.HoldUntil)
	switch {
	case g.Retry:
		return Later(t, g.history.LastAttempt.Add(interval))
	case g.fills:
		return Later(t, g.firstQueued)
	case g.fresh:
		t = Later(t, g.firstQueued.Add(debounce))
		return Later(t, g.history.Passes.at(now, interval).nextAt(interval))
	}
	return Later(t, g.firstQueued)
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
func (g Group) RetryAt(now time.Time, interval time.Duration) time.Time {
	if !g.changes() {
		return time.Time{}
	}
	return g.memberAt(now, interval)
}

// AdminRetryAt is adminAt of a group that may have no admin operation left.
func (g Group) AdminRetryAt() time.Time {
	if g.Admin == nil {
		return time.Time{}
	}
	return g.adminAt()
}

// Paced reports whether the group waits for a pass to come back, and for nothing else.
func (g Group) Paced(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.fills && !g.Retry && g.history.Passes.at(now, interval).nextAt(interval).Equal(g.ReadyAt(now, interval))
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
