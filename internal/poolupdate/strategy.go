// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// Minimum of due pools for a batched or overlapping update. With known support, two save one
// operation; a trial needs more.
const (
	minTrialPools = 3
	minBatchPools = 2
)

// selectBatch returns the pools for one load balancer write and the permitted changes; none if there
// are too few, or if next, which has its turn, cannot join.
func (l *worker) selectBatch(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Permissions) {
	if l.cfg.LoadBalancers == nil || l.batchAfter.After(now) || countWaiting(l.queue) < minBatchPools { // most changes come alone
		return nil, wholewrite.Permissions{}
	}
	permissions := l.capabilities.BatchPermissions(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.trialBlockedReason(now, c) })
	if permissions.IsEmpty() {
		return nil, permissions
	}
	for _, part := range []struct {
		from        int
		permissions wholewrite.Permissions
	}{{minTrialPools, permissions}, {minBatchPools, limitToProven(l, permissions)}} {
		due := l.queue.selectPools(now, func(groups []poolschedule.Group) []lb.PoolKey {
			return poolschedule.SelectBatch(groups, now, l.cfg.Interval, part.permissions)
		})
		if len(due) >= part.from && slices.Contains(due, next) {
			return due, part.permissions
		}
	}
	return nil, permissions
}

// limitToProven removes permissions for changes that Azure is not known to apply.
func limitToProven(l *worker, permissions wholewrite.Permissions) wholewrite.Permissions {
	if l.observedAnswer(wholewrite.Addresses) != behaviour.Accepted {
		permissions.Addresses = wholewrite.Denied
	}
	if l.observedAnswer(wholewrite.AdminStates) != behaviour.Accepted {
		permissions.States = wholewrite.Denied
	}
	return permissions
}

// selectPipeline returns the pools for overlapping writes, in order, and the permission; none if there are
// too few, or if next cannot join.
func (l *worker) selectPipeline(now time.Time, next lb.PoolKey) ([]lb.PoolKey, wholewrite.Permission) {
	if l.cfg.Pipeline == nil || l.cfg.LoadBalancers == nil || l.overlapAfter.After(now) {
		return nil, wholewrite.Denied
	}
	permission := l.capabilities.OverlapPermission(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.trialBlockedReason(now, c) })
	if permission == wholewrite.Denied {
		return nil, permission
	}
	due := l.duePipelined(now, permission)
	from := minTrialPools
	if l.observedAnswer(wholewrite.Overlap) == behaviour.Supersede {
		from = minBatchPools
	}
	if len(due) < from || !slices.Contains(due, next) {
		return nil, permission
	}
	return due, permission
}

// selectChecks returns the pools to check by one read; nil if each is read separately.
func (l *worker) selectChecks(now time.Time) []lb.PoolKey {
	if l.cfg.LoadBalancers == nil {
		return nil
	}
	return l.selectPools(poolschedule.SelectChecks, now)
}

func (l *worker) selectPools(selectFn func([]poolschedule.Group, time.Time, time.Duration) []lb.PoolKey, now time.Time) []lb.PoolKey {
	return l.queue.selectPools(now, func(groups []poolschedule.Group) []lb.PoolKey { return selectFn(groups, now, l.cfg.Interval) })
}

func (l *worker) duePipelined(now time.Time, permission wholewrite.Permission) []lb.PoolKey {
	return l.queue.selectPools(now, func(groups []poolschedule.Group) []lb.PoolKey {
		return poolschedule.SelectPipeline(groups, now, l.cfg.Interval, permission)
	})
}

func listChanges(writes []poolUpdate) []wholewrite.Change {
	var addresses, states bool
	for _, p := range writes {
		a, s := p.result.Change.ChangedKinds()
		addresses, states = addresses || a, states || s
	}
	var all []wholewrite.Change
	if addresses {
		all = append(all, wholewrite.Addresses)
	}
	if states {
		all = append(all, wholewrite.AdminStates)
	}
	return all
}

// isAllowed reports whether a pool's change may join a batched update.
func isAllowed(permissions wholewrite.Permissions, todo poolwrite.Change) bool {
	addresses, states := todo.ChangedKinds()
	return permissions.CanInclude(addresses, states, len(todo.MarkedDown) > 0)
}

// canBatch reports whether a load balancer write is known to update the pool. Azure has been seen to
// report success while it ignored existing pools and created new ones empty. A load balancer that
// ignores admin states is excluded.
func (l *worker) canBatch(p lb.Pool) bool {
	if p.Etag == "" {
		return l.cfg.Behaviour.UpdateNewPools == behaviour.Populated
	}
	return l.observedAnswer(wholewrite.Addresses) == behaviour.Accepted && l.observedAnswer(wholewrite.AdminStates) != behaviour.Ignored
}

// canBatchStates does the same for admin state changes.
func (l *worker) canBatchStates(todo poolwrite.Change) bool {
	_, states := todo.ChangedKinds()
	return !states || l.observedAnswer(wholewrite.AdminStates) == behaviour.Accepted
}

func (l *worker) observedAnswer(c wholewrite.Change) behaviour.Result {
	return l.capabilities.ObservedResult(l.id.SubscriptionID, c, time.Now())
}

// withoutAddresses removes the addresses, which the worker adds after creation.
func withoutAddresses(p lb.Pool) lb.Pool {
	p.Addresses = nil
	return p
}
