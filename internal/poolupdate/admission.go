// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
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

// take spends a pass at now. A change that goes along with an admin state waited for none, and
// leaves no debt: the next one waits for one pass.
func (p passes) take(now time.Time, interval time.Duration) passes {
	p = p.at(now, interval)
	if p.taken == 0 {
		p.refill = now
	}
	p.taken = min(p.taken+1, burst)
	return p
}

// nextAt returns when a pass is there: the zero time if one is now.
func (p passes) nextAt(interval time.Duration) time.Time {
	if p.taken < burst {
		return time.Time{}
	}
	return p.refill.Add(interval)
}

// history is what a lane remembers of a pool.
type history struct {
	passes      passes
	lastAttempt time.Time
	// holdUntil is set while something of our own was not ready.
	holdUntil time.Time
	postponed int
	writes    poolwrite.Memory
	// trouble is since when the pool is not as it has to be, and nothing waits, or may not stay
	// so; zero if neither.
	trouble time.Time
	// notBefore is the latest time that a Retry-After for this pool named. It outlives
	// the operation that met it.
	notBefore time.Time
	// gaveUp is what the pool's last change was given up for; empty if it was not.
	gaveUp string
	// apart is true for a pool that is to have no part in writes of the whole load balancer:
	// one was refused that it was in, or its own was.
	apart bool
	// owed is true after such a write that was nobody's attempt and may have landed: a pool that
	// is found level then was written, and whoever waits for that has not heard of it.
	owed bool
	// lastAdmin is when the last attempt began that a change of admin states caused.
	lastAdmin time.Time
}

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

// looksWait is how many intervals a look for drift stands back behind changes. Many looks
// come due behind a gate, and nobody waits for them.
const looksWait = 20

// rank orders what is ready: admin states, changes, looks. A look that has waited long enough is
// as good as a change.
func (g group) rank(now time.Time, interval time.Duration) int {
	switch {
	case g.urgent(now, interval):
		return 0
	case g.idle() && now.Sub(g.ready) < looksWait*interval:
		return 2
	}
	return 1
}

// age orders the changes of one namespace: fresh work, then retries. What has waited for an
// interval goes before all that has not, so that no kind of work starves another; and so does a
// pool that has just been made, for it serves nobody until it is filled.
func (g group) age(now time.Time, interval time.Duration) int {
	switch {
	case now.Sub(g.ready) >= interval, g.urgent(now, interval), g.fills:
		return 0
	case g.retry && g.admin == nil:
		return 2
	}
	return 1
}

// loses orders changes of admin states, see Stake.
func (g group) loses(other group) int {
	if g.admin == nil || other.admin == nil {
		return 0
	}
	return g.admin.Stake.compare(other.admin.Stake)
}

// before orders groups that are ready: by rank, then by whose turn it is, so that a namespace
// with a thousand changes holds a neighbour up by one of them. Within a namespace they go by
// age, then by what is lost while they wait, then by how long they are ready, then by name so
// that the same input gives the same order.
func (g group) before(other group, now time.Time, interval time.Duration) bool {
	return cmp.Or(
		cmp.Compare(g.rank(now, interval), other.rank(now, interval)),
		cmp.Compare(g.turn, other.turn),
		cmp.Compare(g.age(now, interval), other.age(now, interval)),
		g.loses(other),
		g.ready.Compare(other.ready),
		cmp.Compare(g.pool, other.pool),
	) < 0
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
