// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// changeDebounce is counted from the first change and never extended.
const changeDebounce = 250 * time.Millisecond

// Group is a pool's operations as scheduled. If it has none it is a resync, due since FirstQueued.
type Group struct {
	Pool         lb.PoolKey
	Namespace    string
	Order        uint64
	InNextRound  bool
	hasNewChange bool
	Retry        bool
	HoldFor      time.Duration
	// LongestHold is the longest wait after the last write if it exceeds an interval. QuotaNotBefore is when a used-up quota
	// is available again.
	LongestHold    time.Duration
	QuotaNotBefore time.Time
	Deferred       time.Time
	DeferReason    string
	exempt         bool
	ChangeCount    int
	impact         Impact
	needsFill      bool
	onlyChecks     bool
	FirstQueued    time.Time
	ParkedUntil    time.Time
	Admin          *Operation
	history        History
	DebouncedUntil time.Time
}

// CanGather reports whether the changes only add members, so that no flow is lost while they wait for further ones.
func (g Group) CanGather() bool {
	lost, _ := g.impact.lossRatio()
	return lost == 0 && g.impact.Starting > 0 && g.impact.Stopping == 0
}

// NewGroup returns a pool's group. A new operation never makes a parked one due earlier.
func NewGroup(pool lb.PoolKey, ops []Operation, h History) Group {
	g := Group{Pool: pool, history: h, onlyChecks: true}
	for i := range ops {
		op := &ops[i]
		g.Namespace = op.Ref.Namespace
		g.onlyChecks = g.onlyChecks && op.IsCheck() && !op.OutOfSync
		g.exempt = g.exempt || op.Exempt
		switch {
		case op.Resync:
			continue
		case op.Admin:
			admin := *op // the queue's copy may change
			g.Admin = &admin
			continue
		case op.isFirstAttempt():
			g.ChangeCount += 1 + op.mergeCount
			g.hasNewChange, g.needsFill = true, g.needsFill || op.FillsPool && h.FinalError == "" && !h.MustBeAlone // a failing pool keeps its pace
		default:
			g.Retry = true
		}
		if op.Impact.compareImpact(g.impact) < 0 {
			g.impact = op.Impact
		}
		g.FirstQueued = ratelimit.MinTime(g.FirstQueued, op.QueuedAt)
		g.ParkedUntil = ratelimit.MaxTime(g.ParkedUntil, op.NextEligibleAt)
	}
	return g
}

// NewCheckGroup returns the group of a resync.
func NewCheckGroup(pool lb.PoolKey, namespace string, since time.Time, h History) Group {
	return Group{Pool: pool, Namespace: namespace, onlyChecks: true, FirstQueued: since, history: h}
}

// ReadyAt returns when the membership or the admin states may be attempted, whichever is earlier.
func (g Group) ReadyAt(interval time.Duration) time.Time {
	if g.isResync() {
		return g.memberReadyAt(interval)
	}
	return ratelimit.MinTime(g.RetryAt(interval), g.AdminRetryAt())
}

// DueKinds returns which of them may be attempted now.
func (g Group) DueKinds(now time.Time, interval time.Duration) (member, admin bool) {
	return (g.hasMemberChange() || g.Admin == nil) && !g.memberReadyAt(interval).After(now), g.Admin != nil && !g.AdminRetryAt().After(now)
}

func (g Group) hasMemberChange() bool { return g.hasNewChange || g.Retry }

func (g Group) isResync() bool { return !g.hasMemberChange() && g.Admin == nil }

// IsCheck reports whether no change is known.
func (g Group) IsCheck() bool { return g.isResync() || g.onlyChecks && !g.Retry && g.Admin == nil }

// OldestQueued returns when the oldest operation was queued.
func (g Group) OldestQueued() time.Time {
	if g.Admin == nil {
		return g.FirstQueued
	}
	return ratelimit.MinTime(g.FirstQueued, g.Admin.QueuedAt)
}

// isUrgent reports whether the admin operation ranks first. A failed one does not, nor one within an
// interval of the last: a flapping taint must not starve other pools.
func (g Group) isUrgent(now time.Time, interval time.Duration) bool {
	return g.Admin != nil && g.Admin.FailedAttempts == 0 && !g.AdminRetryAt().After(now) && !g.history.LastAdmin.After(now.Add(-interval))
}

func (g Group) memberReadyAt(interval time.Duration) time.Time {
	return ratelimit.MaxTime(g.poolReadyAt(interval), g.deferredUntil())
}

// MaxDeferral bounds the wait for the namespace's share. With the maximum of pools per namespace
// and load balancer, it causes at most a third of Weir's writes.
const MaxDeferral = 10 * time.Minute

func (g Group) deferredUntil() time.Time {
	if g.Deferred.IsZero() {
		return time.Time{}
	}
	return ratelimit.MinTime(g.Deferred, g.FirstQueued.Add(MaxDeferral))
}

// IsDeferred reports whether the group waits for the namespace's share.
func (g Group) IsDeferred(now time.Time, interval time.Duration) bool {
	until := g.deferredUntil()
	return until.After(now) && until.Equal(g.ReadyAt(interval))
}

// NeedsShare reports whether only the namespace's share may delay the change.
func (g Group) NeedsShare(now time.Time, interval time.Duration) bool {
	return g.hasMemberChange() && !g.exempt && !g.IsCheck() && !g.poolReadyAt(interval).After(now.Add(changeDebounce))
}

func (g Group) poolReadyAt(interval time.Duration) time.Time {
	t := ratelimit.MaxTime(g.NotBefore(), g.history.WaitUntil)
	switch {
	case g.Retry:
		return ratelimit.MaxTime(t, g.history.LastAttempt.Add(interval))
	case g.needsFill, !g.hasNewChange:
		return ratelimit.MaxTime(t, g.FirstQueued)
	}
	t = ratelimit.MaxTime(t, g.FirstQueued.Add(changeDebounce))
	if g.onlyChecks {
		t = ratelimit.MaxTime(t, g.DebouncedUntil)
	}
	return ratelimit.MaxTime(t, g.pacedUntil(interval))
}

func (g Group) pacedUntil(interval time.Duration) time.Time {
	if g.history.LastChange.IsZero() {
		return time.Time{}
	}
	if g.exempt {
		return ratelimit.MinTime(g.history.LastChange.Add(interval), g.FirstQueued.Add(g.HoldFor))
	}
	return ratelimit.MaxTime(g.QuotaNotBefore, ratelimit.MinTime(g.history.LastChange.Add(max(interval, g.LongestHold)), g.FirstQueued.Add(g.HoldFor)))
}

// MayNeedPace is NeedsPace before LongestHold and QuotaNotBefore are known.
func (g Group) MayNeedPace(now time.Time, interval time.Duration) bool {
	return g.hasNewChange && !g.Retry && !g.needsFill && g.history.LastChange.Add(ratelimit.MaxStretch*interval).After(now)
}

// NeedsPace reports whether the pool has a change that its pace may delay.
func (g Group) NeedsPace(now time.Time, interval time.Duration) bool {
	paced := g.history.LastChange.Add(max(interval, g.LongestHold)).After(now) || g.QuotaNotBefore.After(now)
	return paced && g.MayNeedPace(now, interval)
}

// NotBefore is the pool's Retry-After.
func (g Group) NotBefore() time.Time { return ratelimit.MaxTime(g.ParkedUntil, g.history.NotBefore) }

// EligibleAt is the Retry-After if it has not passed, or zero.
func (g Group) EligibleAt(now time.Time) time.Time {
	if at := g.NotBefore(); at.After(now) {
		return at
	}
	return time.Time{}
}

// RetryAt returns when the membership may be retried, or zero without membership operations.
func (g Group) RetryAt(interval time.Duration) time.Time {
	if !g.hasMemberChange() {
		return time.Time{}
	}
	return g.memberReadyAt(interval)
}

// AdminRetryAt returns when the admin operation may be attempted, or zero without one: without debouncing or pace.
func (g Group) AdminRetryAt() time.Time {
	if g.Admin == nil {
		return time.Time{}
	}
	return ratelimit.MaxTime(ratelimit.MaxTime(g.NotBefore(), g.history.WaitUntil), ratelimit.MaxTime(g.Admin.QueuedAt, g.Admin.retryAt))
}

// IsPaced reports whether the group only waits for its pace.
func (g Group) IsPaced(now time.Time, interval time.Duration) bool {
	return g.NeedsPace(now, interval) && g.pacedUntil(interval).Equal(g.ReadyAt(interval))
}

const (
	turnTimeout = 15 * time.Second
	// maxTurnAttempts leaves one for a pool that a batch returns for a separate update.
	maxTurnAttempts = 2
)

// Turn is the work between two writes of a load balancer: one attempt per namespace with a due change, and all new
// admin states. It bounds the wait of both.
type Turn struct {
	deadline time.Time
	attempt  int
	shares   map[string]turnShare
}

type turnShare struct {
	attempts, lastAttempt int
}

// NewTurn starts a turn.
func NewTurn(now time.Time) *Turn {
	return &Turn{deadline: now.Add(turnTimeout), shares: map[string]turnShare{}}
}

// StartAttempt starts an attempt.
func (t *Turn) StartAttempt() { t.attempt++ }

// AddAttempt records that the attempt includes the namespace.
func (t *Turn) AddAttempt(namespace string) {
	s := t.shares[namespace]
	if s.lastAttempt != t.attempt {
		s.attempts, s.lastAttempt = s.attempts+1, t.attempt
	}
	t.shares[namespace] = s
}

// MarkDone records that a change of the namespace was settled.
func (t *Turn) MarkDone(namespace string) { t.shares[namespace] = turnShare{attempts: maxTurnAttempts} }

// FilterRemaining returns the groups that may still be attempted. Checks are only allowed first.
func (t *Turn) FilterRemaining(groups []Group, now time.Time, interval time.Duration) []Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g Group) bool {
		hasLeft := t.shares[g.Namespace].attempts < maxTurnAttempts || g.isUrgent(now, interval)
		return t.attempt > 0 && (!now.Before(t.deadline) || g.IsCheck() || !hasLeft)
	})
}
