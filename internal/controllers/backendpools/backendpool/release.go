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
func (c *Controller) releasePool(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, now time.Time) error {
	if !hasFinalizer(p) {
		e.setIdleInput(operationInput{}) // another controller's finalizer blocks deletion
		return nil
	}
	if binding.State == Releasing && binding.HasRecord && !e.IsReleased() {
		return c.suspendPool(ctx, p, e, binding, now) // others may keep the pool: retain the record until that is known
	}
	if binding.RemovesMembers() && !e.IsReleased() && !c.Owner.IsInUse(p) {
		if !e.needsOperation(newOperationInput(p, binding, membership.Set{}), now) {
			return nil
		}
		c.queueRemoval(e, binding, now)
		return c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
			reason, message := removalMessage(binding, true)
			setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, message)
		})
	}
	if !binding.AllowsUpdates() && !binding.HasRecord && !e.tryAbandon() {
		c.Queue(e.ref) // it was taken just now: evaluate again
		return nil
	}
	if reason := map[State]string{Paused: "deleted while paused", NotAllowed: "deleted while its namespace may not bind the pool"}[binding.State]; reason != "" && binding.HasRecord {
		c.recordWarning(p, EventLeftInPlace, reason+": "+DescribePool(binding.Pool)+" was left as it is, with the addresses that Weir wrote")
	}
	// Forget before releasing, so that no state of the next owner is dropped.
	if binding.State != Duplicate && binding.State != Invalid && binding.State != NotAllowed {
		c.Workers.Forget(binding.Pool)
	}
	c.retainRecord(p, e, binding)
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
