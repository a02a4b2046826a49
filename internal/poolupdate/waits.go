// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// Waiting is a pool with an operation that is not attempted yet.
type Waiting struct {
	Ref   poolschedule.Ref
	Pool  lb.PoolID
	Cause Cause
	// Look is true if nothing is known to have changed: the pool has to be read, and
	// what was said of it stands until then.
	Look bool
	// Admin is true if a change of admin states waits.
	Admin bool
	// Since is when it was seen to wait: a report of a later time knows better.
	Since time.Time
	// Until is when an attempt is allowed; zero if nobody knows.
	Until time.Time
	// Why names what is closed, or who holds the lease; empty for other causes.
	Why string
}

// Cause is what a change waits for.
type Cause string

// The causes.
const (
	CauseGate       Cause = "Gate"       // Azure takes no requests of the subscription, or for the load balancer
	CauseRetryAfter Cause = "RetryAfter" // Azure asked to leave this pool alone for a while
	CauseLease      Cause = "Lease"      // another controller is at work
	CausePace       Cause = "Pace"       // the pool is busy, or a quota comes back step by step
	CauseShare      Cause = "Share"      // its namespace has used up its share of writes
	CauseBehind     Cause = "Behind"     // something else on its load balancer goes first
)

// soft reports a wait that is part of the normal course.
func (c Cause) soft() bool { return c == CausePace || c == CauseBehind }

// obstacle is what keeps a lane from a pass.
type obstacle struct {
	askAt time.Time // again; zero if nothing kept it
	// until is when the obstacle is over; zero if nobody knows.
	until time.Time
	cause Cause
	why   string
}

// worthTelling is the shortest wait that people hear of.
const worthTelling = time.Second

// news returns the pools that wait although no attempt of theirs has failed, and of which
// nobody was told yet, or something else. met is what keeps the whole lane.
func (q *queue) news(met obstacle, now time.Time, interval time.Duration) []Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Waiting
	for _, g := range q.groups(now) {
		w := q.busy[g.Pool()]
		if wait, waits := w.waits(g, met, now, interval); waits && w.isNews(wait, interval) {
			w.announced = &wait
			all = append(all, wait)
		}
	}
	slices.SortFunc(all, func(a, b Waiting) int { return cmp.Compare(a.Pool.Key(), b.Pool.Key()) })
	return all
}

// behind tells of one pool whose lane is busy with something else.
func (q *queue) behind(key lb.PoolKey) (Waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now() // not before the end of the last attempt, which would know better
	w := q.pools[key]
	if w == nil || w.inFlight || w.announced != nil || !w.standsBehind() {
		return Waiting{}, false
	}
	w.announced = &Waiting{Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Cause: CauseBehind, Since: now}
	return *w.announced, true
}

// standsBehind reports whether people want to hear that something else goes first: not
// of a retry, which has its own time, and not of a pool that is only looked at.
func (w *waiting) standsBehind() bool {
	g := w.group("", poolschedule.Company{})
	return w.changed() && !g.Retry && (g.Admin == nil || g.Admin.Tries == 0)
}

// changed reports whether a change is known to wait.
func (w *waiting) changed() bool {
	return slices.ContainsFunc(w.ops, func(op poolschedule.Operation) bool { return !op.Looks() })
}

// waits says what a pool waits for, if that is worth telling. What waits after a failure
// was told by the report of that attempt, unless something else delays it further.
func (w *waiting) waits(g poolschedule.Group, met obstacle, now time.Time, interval time.Duration) (Waiting, bool) {
	if len(w.ops) == 0 || w.inFlight {
		return Waiting{}, false // a look for drift is no change
	}
	ready := g.ReadyAt(interval)
	wait := Waiting{
		Ref: w.ops[0].Ref, Pool: w.ops[0].Pool, Look: !w.changed(), Admin: g.Admin != nil, Since: now,
		Cause: met.cause, Until: met.until, Why: met.why,
	}
	switch {
	case met.until.After(ready):
	case met.cause == CauseBehind && !w.standsBehind():
		return Waiting{}, false
	case met.cause != "" && met.until.IsZero() && ready.Sub(now) < worthTelling:
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

// isNews reports whether people know something else of the pool so far. That it is kept
// to a pace, or stands behind others, is told once: the time moves with each of them.
func (w *waiting) isNews(wait Waiting, interval time.Duration) bool {
	var before Waiting
	if w.announced != nil {
		before = *w.announced
	}
	moved := wait.Until.Sub(before.Until)
	if wait.Cause == CauseShare && before.Cause == CauseShare {
		return moved >= interval // its text has figures that change all the time
	}
	if wait.Cause.soft() && before.Cause.soft() {
		return moved >= interval && !before.Until.IsZero()
	}
	return wait.Cause != before.Cause || wait.Look != before.Look || wait.Until.IsZero() && wait.Why != before.Why || moved >= worthTelling
}
