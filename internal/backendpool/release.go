// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
)

// release removes the finalizer of a deleted BackendPool once the pool contains none of Weir's addresses, or
// immediately if they must remain. While the Service releases its load balancer, and possibly the pool, it
// waits.
func (c *Controller) release(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, now time.Time) error {
	if !hasFinalizer(p) {
		return nil // another controller's finalizer blocks deletion
	}
	if is.State == Leaving && is.Taken && !e.Released() {
		return c.hold(ctx, p, e, is, now) // others may keep the pool: retain the record until that is known
	}
	if is.Removes() && !e.Released() && !c.Owner.Needed(p) {
		if !e.due(situationOf(p, is, membership.Set{}), now) {
			return nil
		}
		c.remove(e, is, now)
		return c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
			reason, why := removed(is, true)
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, why)
		})
	}
	if !is.Works() && !is.Taken && !e.abandon() {
		c.Queue(e.ref) // it was taken just now: evaluate again
		return nil
	}
	if why := map[State]string{Paused: "deleted while paused", NotAllowed: "deleted while its namespace may not bind the pool"}[is.State]; why != "" && is.Taken {
		c.warn(p, EventLeftInPlace, why+": "+DescribePool(is.Pool)+" was left as it is, with the addresses that Weir wrote")
	}
	// Forget before releasing, so that no state of the next owner is dropped.
	if is.State != Duplicate && is.State != Invalid && is.State != NotAllowed {
		c.Lanes.Forget(is.Pool)
	}
	c.handOver(p, e, is)
	return c.statuses.setFinalizer(ctx, e, p, false)
}

// abandon rejects further records unless the pool was taken in the meantime: a running attempt must not write
// for a BackendPool that is removed without release.
func (e *Entry) abandon() bool {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	e.mu.Lock()
	defer e.mu.Unlock()
	if takes(&e.status) {
		return false
	}
	e.gone = true
	return true
}

// abandoned reports whether the finalizer is being removed.
func abandoned(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone
}
