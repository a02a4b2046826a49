// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/updater"
)

// Report implements updater.Reporter. It writes the status before the events, so that the next process
// knows which were sent. The work queue retries a failed status write.
func (c *Controller) Report(ctx context.Context, r updater.Report) {
	defer c.recordServiceEvents(r)
	e, p := c.lookupEntry(r.Ref)
	if p == nil || r.Outcome == diff.Shutdown {
		return
	}
	binding := c.ResolveBinding(p, time.Now())
	if r.Outcome == diff.Postponed && !r.StatesInSync {
		c.recordPostponed(ctx, p, e, binding, r)
		return
	}
	event := ""
	if p.Spec.Nodes != nil && binding.AllowsUpdates() && !binding.RemovesMembers() {
		if event = e.nextEventReason(eventReason(r)); isRepair(r) {
			event = EventUpdated // each repair has one
		}
	}
	c.Owner.HandleAttempt(p, r)
	set := c.membersOfAttempt(p, e)
	turned := e.adminChanges(r, set)
	if r.InSync || r.StatesInSync {
		e.recordDown(set)
	}
	c.Events.AdminStates(p, binding, r, turned)
	if c.MembersShown != nil {
		e.recordShown(r)
		defer c.MembersShown(r.Ref)
	}
	e.scheduleAfterAttempt(binding, r, c.Config)
	contested, reason := contention(r)
	began := contested != "" && !hasConflict(e)
	err := c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		recordAttempt(s, set, r)
		SetMemberDiff(s, r, c.Cluster.NodeAt)
		recordLastEvent(s, p, event, r)
		setConflictCondition(s, r, p.Generation)
		setAttemptConditions(s, binding, set, r, p.Generation)
	})
	if c.statuses.LacksMembers(p) {
		c.Owner.HandleEmpty(p)
	}
	c.recordNodePoolEvent(p, event, r)
	if began && !isDeleted(err) {
		c.recordWarning(p, EventPoolConflict, reason)
	}
	if !isDeleted(err) {
		c.retained.forgetRecord(r)
	}
	if err != nil && !isDeleted(err) && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "status not written, trying again", "backendPool", objectKey(p.Namespace, p.Name), "err", err)
	}
	// The work queue retries the write and schedules the next check.
	c.Queue(r.Ref)
}

// membersOfAttempt returns the members of the ending attempt, or the current ones if it failed before it read them.
func (c *Controller) membersOfAttempt(p *v1alpha1.BackendPool, e *Entry) membership.Set {
	if set := e.attemptMembers(); set != nil {
		return *set
	}
	set, _ := membersOf(c, p, e) // empty if the selector is invalid
	return set
}

// recordPostponed records why an attempt was postponed without using a retry. A failed write is only logged: the
// pool is then waiting for the API server.
func (c *Controller) recordPostponed(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, binding Binding, r updater.Report) {
	if !binding.AllowsUpdates() {
		return
	}
	err := c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		clearParked(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, r.Fault.Error())
	})
	if err != nil && !isDeleted(err) {
		c.Log.DebugContext(ctx, "status not written", "backendPool", objectKey(p.Namespace, p.Name), "err", err)
	}
}

// RecordPlan records what would change in Azure without dry run.
func (c *Controller) RecordPlan(ctx context.Context, p *v1alpha1.BackendPool, text string) error {
	e := c.statuses.GetEntry(RefOf(p))
	if e == nil {
		return nil
	}
	err := c.updatePoolStatus(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) { setPlanned(s, p.Generation, text) })
	if isDeleted(err) {
		return nil
	}
	return err
}

// updatePoolStatus updates the status, and records an event if its condition became or stopped being a problem.
func (c *Controller) updatePoolStatus(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, fn func(*v1alpha1.BackendPoolStatus)) error {
	var ended, began, reason string
	err := c.statuses.updateStatus(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		fn(s)
		ended, began, reason = recordProblem(s)
	})
	if isDeleted(err) {
		return err
	}
	switch {
	case ended != "" && (p.Spec.Nodes != nil || c.Owner.IsCreatedByWeir(p) && slices.Contains(missingPoolReasons, ended)): // see recordNodePoolEvent, and the case below
	case ended != "":
		c.Events.OnPool(p, Event{Normal, EventUpdated, updatedMessage + ", after " + ended})
	case began == "":
	case began == v1alpha1.ReasonFailed && p.Spec.Nodes != nil: // recordNodePoolEvent has the failure
	case c.Owner.IsCreatedByWeir(p) && slices.Contains(missingPoolReasons, began):
		c.Owner.HandleMissing(p) // not a user error: it was deleted with its rules, or is being recreated
	default:
		c.recordWarning(p, began, reason)
	}
	return err
}

var missingPoolReasons = []string{v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonLoadBalancerNotFound}
