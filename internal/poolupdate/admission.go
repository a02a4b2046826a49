// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/lb"
)

const (
	// debounce is how long a fresh change waits for company. It is counted from
	// the first operation and never extended.
	debounce = 250 * time.Millisecond
	// burst is how many passes a quiet pool has in hand; one more comes each interval.
	burst = 3
)

// passes is a pool's stock of passes. The zero value is a full stock.
type passes struct {
	taken  int       // how many of the burst are spent
	refill time.Time // when the last one came back, or the first was taken
}

// at returns the stock at now: one pass comes back each interval.
func (p passes) at(now time.Time, interval time.Duration) passes {
	if p.taken == 0 {
		return passes{}
	}
	back := min(int(now.Sub(p.refill)/interval), p.taken)
	if back > 0 {
		p.taken -= back
		p.refill = p.refill.Add(time.Duration(back) * interval)
	}
	return p
}

// take spends a pass at now.
func (p passes) take(now time.Time, interval time.Duration) passes {
	p = p.at(now, interval)
	if p.taken == 0 {
		p.refill = now
	}
	p.taken++
	return p
}

// nextAt returns when a pass is there: the zero time if one is now.
func (p passes) nextAt(interval time.Duration) time.Time {
	if p.taken < burst {
		return time.Time{}
	}
	return p.refill.Add(time.Duration(p.taken-burst+1) * interval)
}

// history is what a lane remembers of a pool.
type history struct {
	passes      passes
	lastAttempt time.Time
	// holdUntil is set while something of our own was not ready.
	holdUntil time.Time
	postponed int
	// lost is the etag that guards a write of ours whose fate is unknown; empty if none.
	lost string
	// notBefore is the latest time that a Retry-After for this pool named. It outlives
	// the operation that met it.
	notBefore time.Time
	// gaveUp is what the pool's last change was given up for; empty if it was not.
	gaveUp string
}

// group is the operations of one pool, as far as admission looks at them. One that is
// neither fresh nor a retry has no operation: the pool is due to be looked at for drift,
// since firstQueued.
type group struct {
	pool        lb.PoolKey
	fresh       bool
	retry       bool
	firstQueued time.Time
	parkedUntil time.Time
	history     history
	// ready is when the group may be attempted, once admission has looked.
	ready time.Time
}

// summarize builds the group of a pool's operations. The most restrictive member
// decides for all: a fresh operation never takes a parked one along early.
func summarize(pool lb.PoolKey, ops []Operation, h history) group {
	g := group{pool: pool, history: h}
	for _, op := range ops {
		switch {
		case op.drift:
			continue
		case op.fresh():
			g.fresh = true
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

// readyAt returns when the group may be attempted. Retry-After only ever delays.
func (g group) readyAt(now time.Time, interval time.Duration) time.Time {
	t := later(g.earliest(), g.history.holdUntil)
	switch {
	case g.retry:
		return later(t, g.history.lastAttempt.Add(interval))
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

// looksWait is how many intervals a look for drift stands back behind changes. Many looks
// come due behind a gate, and nobody waits for them.
const looksWait = 20

// rank orders what is ready: fresh work, retries, drift. What has waited for an interval
// goes before all that has not, so that no kind of work starves another; a look has more
// patience.
func (g group) rank(now time.Time, interval time.Duration) int {
	waited, look := now.Sub(g.ready), !g.fresh && !g.retry
	switch {
	case look && waited < looksWait*interval:
		return 3
	case waited >= interval:
		return 0
	case g.retry:
		return 2
	}
	return 1
}

// before orders groups that are ready: by rank, then by how long they are, then by name
// so that the same input gives the same order.
func (g group) before(other group, now time.Time, interval time.Duration) bool {
	if a, b := g.rank(now, interval), other.rank(now, interval); a != b {
		return a < b
	}
	if !g.ready.Equal(other.ready) {
		return g.ready.Before(other.ready)
	}
	return g.pool < other.pool
}

// retryAt is readyAt of a group that may have no operation left: then it is zero.
func (g group) retryAt(now time.Time, interval time.Duration) time.Time {
	if !g.fresh && !g.retry {
		return time.Time{}
	}
	return g.readyAt(now, interval)
}

// paced reports whether the group waits for a pass to come back, and for nothing else.
func (g group) paced(now time.Time, interval time.Duration) bool {
	return !g.retry && g.history.passes.at(now, interval).nextAt(interval).Equal(g.readyAt(now, interval))
}

// admit picks the group to attempt now; if there is none, it returns when to ask
// again: zero if only a new operation can change the answer.
func admit(groups []group, now time.Time, interval time.Duration) (pick lb.PoolKey, ok bool, askAt time.Time) {
	var best group
	for _, g := range groups {
		g.ready = g.readyAt(now, interval)
		switch {
		case g.ready.After(now):
			askAt = earlier(askAt, g.ready)
		case !ok || g.before(best, now, interval):
			best, ok = g, true
		}
	}
	return best.pool, ok, askAt
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
