// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// Waiting is a pool that waits for an attempt.
type Waiting struct {
	Ref   poolschedule.Ref
	Pool  lb.PoolID
	Cause Cause
	// Look is true if no change is known; the pool's status stands.
	Look bool
	// Admin is true if admin states wait.
	Admin bool
	// Since is when the wait was seen; later reports supersede it.
	Since time.Time
	// Until is when an attempt is possible; zero if unknown.
	Until time.Time
	// Why names what is closed, or the lease holder; empty for other causes.
	Why string
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

func (c Cause) soft() bool { return c == CausePace || c == CauseBehind }

// obstacle blocks a worker.
type obstacle struct {
	askAt time.Time // zero if nothing blocks
	// until is zero if unknown.
	until time.Time
	cause Cause
	why   string
}

// worthTelling is the shortest wait that is reported.
const worthTelling = time.Second

// news returns new or changed waits of pools without a failed attempt. blocked applies to the worker.
func (q *queue) news(blocked obstacle, now time.Time, interval time.Duration) []Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Waiting
	for _, g := range q.groups(now) {
		w := q.busy[g.Pool()]
		if wait, waits := w.waits(g, blocked, now, interval); waits && w.isNews(wait, interval) {
			w.announced = &wait
			all = append(all, wait)
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int { return cmp.Compare(a.Pool.Key(), b.Pool.Key()) })
	return all
}

// behind returns the wait of a pool with a busy worker.
func (q *queue) behind(key lb.PoolKey) (Waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now() // not before the end of the last attempt, whose report would supersede it
	w := q.pools[key]
	if w == nil || w.inFlight || w.announced != nil || !w.standsBehind() {
		return Waiting{}, false
	}
	w.announced = &Waiting{Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Cause: CauseBehind, Since: now}
	return *w.announced, true
}

// standsBehind reports whether waiting for another write is worth reporting: not for retries and
// checks.
func (w *waiting) standsBehind() bool {
	g := w.group("", poolschedule.Company{})
	return w.changed() && !g.Retry && (g.Admin == nil || g.Admin.Tries == 0)
}

func (w *waiting) changed() bool {
	return slices.ContainsFunc(w.ops, func(op poolschedule.Operation) bool { return !op.Looks() })
}

// waits returns what a pool waits for, if worth reporting. Waits after a failure were in that
// attempt's report.
func (w *waiting) waits(g poolschedule.Group, blocked obstacle, now time.Time, interval time.Duration) (Waiting, bool) {
	if len(w.ops) == 0 || w.inFlight {
		return Waiting{}, false // a resync is no change
	}
	ready := g.ReadyAt(interval)
	wait := Waiting{
		Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Look: !w.changed(), Admin: g.Admin != nil, Since: now,
		Cause: blocked.cause, Until: blocked.until, Why: blocked.why,
	}
	switch {
	case blocked.until.After(ready):
	case blocked.cause == CauseBehind && !w.standsBehind():
		return Waiting{}, false
	case blocked.cause != "" && blocked.until.IsZero() && ready.Sub(now) < worthTelling:
		return wait, true
	case g.IsDeferred(now, interval):
		wait.Cause, wait.Until, wait.Why = CauseShare, ready, g.Why
	case g.Retry, g.Admin != nil && g.Admin.Tries > 0:
		return Waiting{}, false
	case g.Earliest().Equal(ready):
		wait.Cause, wait.Until, wait.Why = CauseRetryAfter, ready, ""
	case g.Paced(now, interval):
		wait.Cause, wait.Until, wait.Why = CausePace, ready, ""
	default:
		return Waiting{}, false
	}
	return wait, wait.Until.Sub(now) >= worthTelling
}

// isNews compares wait with the last report. Pace and Behind are reported once, because their times
// keep moving.
func (w *waiting) isNews(wait Waiting, interval time.Duration) bool {
	var before Waiting
	if w.announced != nil {
		before = *w.announced
	}
	moved := wait.Until.Sub(before.Until)
	if wait.Cause == CauseShare && before.Cause == CauseShare {
		return moved >= interval // its text contains figures that always change
	}
	if wait.Cause.soft() && before.Cause.soft() {
		return moved >= interval && !before.Until.IsZero()
	}
	return wait.Cause != before.Cause || wait.Look != before.Look || wait.Until.IsZero() && wait.Why != before.Why || moved >= worthTelling
}
