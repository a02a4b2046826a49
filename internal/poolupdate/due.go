// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// debounce is how long a fresh change waits for company. It is counted from
// the first operation and never extended.
const debounce = 250 * time.Millisecond

// group is the operations of one pool, as far as admission looks at them. One that is
// neither fresh nor a retry, and has no admin operation, has none: the pool is due to be
// looked at for drift, since firstQueued.
type group struct {
	pool lb.PoolKey
	// namespace is that of its BackendPool, and turn when that has its next.
	namespace string
	turn      uint64
	fresh     bool
	retry     bool
	// fills is true if the pool has just been made, and has to be filled.
	fills bool
	// quiet is true if no change is known to stand behind any of its operations.
	quiet       bool
	firstQueued time.Time
	parkedUntil time.Time
	// admin is its admin operation, if there is one.
	admin   *Operation
	history history
	// ready is when the group may be attempted, once admission has looked.
	ready time.Time
}

// summarize builds the group of a pool's operations. The most restrictive member
// decides for all: a fresh operation never takes a parked one along early.
func summarize(pool lb.PoolKey, ops []Operation, h history) group {
	g := group{pool: pool, history: h, quiet: true}
	for _, op := range ops {
		g.namespace = op.Ref.Namespace
		g.quiet = g.quiet && op.looks()
		switch {
		case op.drift:
			continue
		case op.Admin:
			g.admin = &op
			continue
		case op.fresh():
			g.fresh, g.fills = true, g.fills || op.New && h.gaveUp == "" && !h.apart // one that fails keeps its pace
		default:
			g.retry = true
		}
		if g.firstQueued.IsZero() || op.queuedAt.Before(g.firstQueued) {
			g.firstQueued = op.queuedAt
		}
		g.parkedUntil = later(g.parkedUntil, op.nextEligibleAt)
	}
	return g
}

// lookAt is the group of a pool that is due to be looked at for drift since a time.
func lookAt(pool lb.PoolKey, namespace string, since time.Time, h history) group {
	return group{pool: pool, namespace: namespace, quiet: true, firstQueued: since, history: h}
}

// readyAt returns when the group may be attempted: when the first of its two kinds may.
func (g group) readyAt(now time.Time, interval time.Duration) time.Time {
	switch {
	case g.admin == nil:
		return g.memberAt(now, interval)
	case !g.changes():
		return g.adminAt()
	}
	return earlier(g.memberAt(now, interval), g.adminAt())
}

// due returns which of its two kinds may be attempted now.
func (g group) due(now time.Time, interval time.Duration) (member, admin bool) {
	return (g.changes() || g.admin == nil) && !g.memberAt(now, interval).After(now), g.admin != nil && !g.adminAt().After(now)
}

// changes reports whether the group has operations of the membership.
func (g group) changes() bool { return g.fresh || g.retry }

// looks reports whether the pool is only looked at.
func (g group) looks() bool { return !g.changes() && g.admin == nil }

// idle reports whether nobody waits for the group: it is a look, for drift or at a pool that was
// missing, or level, when it was seen last.
func (g group) idle() bool { return g.looks() || g.quiet && !g.retry && g.admin == nil }

// oldest is since when the group waits.
func (g group) oldest() time.Time {
	if g.admin == nil {
		return g.firstQueued
	}
	return earlier(g.firstQueued, g.admin.queuedAt)
}

// adminAt returns when the admin operation may be attempted. It waits for no company and no
// pace, but for what it has met itself.
func (g group) adminAt() time.Time {
	return later(later(g.earliest(), g.history.holdUntil), later(g.admin.queuedAt, g.admin.againAt))
}

// urgent reports whether the admin operation goes ahead of everything. One that has failed
// stands in line with the rest, as does one of a pool that had such an attempt within the
// interval: a taint that flaps starves nobody.
func (g group) urgent(now time.Time, interval time.Duration) bool {
	return g.admin != nil && g.admin.tries == 0 && !g.adminAt().After(now) && !g.history.lastAdmin.After(now.Add(-interval))
}

// memberAt returns when the membership may be applied. Retry-After only ever delays.
func (g group) memberAt(now time.Time, interval time.Duration) time.Time {
	t := later(g.earliest(), g.history.holdUntil)
	switch {
	case g.retry:
		return later(t, g.history.lastAttempt.Add(interval))
	case g.fills:
		return later(t, g.firstQueued)
	case g.fresh:
		t = later(t, g.firstQueued.Add(debounce))
		return later(t, g.history.passes.at(now, interval).nextAt(interval))
	}
	return later(t, g.firstQueued)
}

// earliest is the time before which Azure wants no call for the pool.
func (g group) earliest() time.Time { return later(g.parkedUntil, g.history.notBefore) }

// eligibleAt is earliest if that is still to come, else zero.
func (g group) eligibleAt(now time.Time) time.Time {
	if at := g.earliest(); at.After(now) {
		return at
	}
	return time.Time{}
}

// retryAt is memberAt of a group that may have no operation of the membership left: then it
// is zero.
func (g group) retryAt(now time.Time, interval time.Duration) time.Time {
	if !g.changes() {
		return time.Time{}
	}
	return g.memberAt(now, interval)
}

// adminRetryAt is adminAt of a group that may have no admin operation left.
func (g group) adminRetryAt() time.Time {
	if g.admin == nil {
		return time.Time{}
	}
	return g.adminAt()
}

// paced reports whether the group waits for a pass to come back, and for nothing else.
func (g group) paced(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.fills && !g.retry && g.history.passes.at(now, interval).nextAt(interval).Equal(g.readyAt(now, interval))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier returns the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
