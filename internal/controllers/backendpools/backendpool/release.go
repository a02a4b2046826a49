// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/membership"
)

// releasePool removes the finalizer of a deleted BackendPool once the pool contains none of Weir's addresses, or
// immediately if they must remain. While the Service releases its load balancer, and possibly the pool, it
// waits.
func (c *Controller) releasePool(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Binding, now time.Time) error {
	if !hasFinalizer(p) {
		e.setIdleInput(operationInput{}) // another controller's finalizer blocks deletion
		return nil
	}
	if is.State == Releasing && is.HasRecord && !e.IsReleased() {
		return c.suspendPool(ctx, p, e, is, now) // others may keep the pool: retain the record until that is known
	}
	if is.RemovesMembers() && !e.IsReleased() && !c.Owner.IsInUse(p) {
		if !e.needsOperation(newOperationInput(p, is, membership.Set{}), now) {
			return nil
		}
		c.queueRemoval(e, is, now)
		return c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
			reason, why := removalMessage(is, true)
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, why)
		})
	}
	if !is.AllowsUpdates() && !is.HasRecord && !e.tryAbandon() {
		c.Queue(e.ref) // it was taken just now: evaluate again
		return nil
	}
	if why := map[State]string{Paused: "deleted while paused", NotAllowed: "deleted while its namespace may not bind the pool"}[is.State]; why != "" && is.HasRecord {
		c.recordWarning(p, EventLeftInPlace, why+": "+DescribePool(is.Pool)+" was left as it is, with the addresses that Weir wrote")
	}
	// Forget before releasing, so that no state of the next owner is dropped.
	if is.State != Duplicate && is.State != Invalid && is.State != NotAllowed {
		c.Workers.Forget(is.Pool)
	}
	c.retainRecord(p, e, is)
	return c.statuses.setFinalizer(ctx, e, p, false)
}

// tryAbandon rejects further records unless the pool was taken in the meantime: a running attempt must not write
// for a BackendPool that is removed without release.
func (e *Entry) tryAbandon() bool {
	e.writeSlot <- struct{}{}
	defer func() { <-e.writeSlot }()
	e.mu.Lock()
	defer e.mu.Unlock()
	if hasTakenPool(&e.status) {
		return false
	}
	e.isAbandoned = true
	return true
}

// isAbandoned reports whether the finalizer is being removed.
func isAbandoned(e *Entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isAbandoned
}
