// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// Report implements poolupdate.Reporter. It writes the status before the events, so that the next process
// knows which were sent. The work queue retries a failed status write.
func (c *Controller) Report(ctx context.Context, r poolupdate.Report) {
	defer c.tellServices(r)
	e, p := c.known(r.Ref)
	if p == nil || r.Outcome == poolwrite.Shutdown {
		return
	}
	is := c.Entitlement(p, time.Now())
	if r.Outcome == poolwrite.Postponed && !r.States {
		c.postponed(ctx, p, e, is, r)
		return
	}
	event := ""
	if p.Spec.Nodes != nil && is.Works() && !is.Removes() {
		event = e.tells(reasonOf(r))
	}
	c.Owner.Filled(p, r)
	set := c.workedWith(p, e)
	turned := e.turnedBy(r, set)
	if r.Settled || r.States {
		e.shows(set)
	}
	c.Events.AdminStates(p, is, r, turned)
	e.schedule(is, r, c.Config)
	began := len(r.Contested) > 0 && !contested(e)
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		note(s, set, r)
		members.Differ(s, r, c.Cluster.NodeAt)
		notesEvents(s, p, event, r)
		contest(s, r, p.Generation)
		judge(s, is, set, r, p.Generation)
	})
	c.tellOfNodes(p, event, r)
	if began && !isGone(err) {
		c.warn(p, EventPoolContested, contestedText(r.Contested))
	}
	if !isGone(err) {
		c.unrecorded.forget(r)
	}
	if err != nil && !isGone(err) && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "status not written, trying again", "backendPool", key(p.Namespace, p.Name), "err", err)
	}
	// The work queue retries the write and schedules the next check.
	c.Queue(r.Ref)
}

// workedWith returns the members of the ending attempt, or the current ones if it failed before it read them.
func (c *Controller) workedWith(p *v1alpha1.BackendPool, e *Entry) membership.Set {
	if set := e.remembered(); set != nil {
		return *set
	}
	set, _ := membersOf(c, p, e) // empty if the selector is invalid
	return set
}

// postponed records why an attempt was postponed without using a retry. A failed write is only logged: the
// pool is then waiting for the API server.
func (c *Controller) postponed(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, is Entitlement, r poolupdate.Report) {
	if !is.Works() {
		return
	}
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, r.Fault.Error())
	})
	if err != nil && !isGone(err) {
		c.Log.DebugContext(ctx, "status not written", "backendPool", key(p.Namespace, p.Name), "err", err)
	}
}

// Rehearsed records what would change in Azure without dry run.
func (c *Controller) Rehearsed(ctx context.Context, p *v1alpha1.BackendPool, text string) error {
	e := c.statuses.Known(RefOf(p))
	if e == nil {
		return nil
	}
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) { setRehearsed(s, p.Generation, text) })
	if isGone(err) {
		return nil
	}
	return err
}

// change updates the status, and records an event if it became or stopped being a problem.
func (c *Controller) change(ctx context.Context, p *v1alpha1.BackendPool, e *Entry, fn func(*v1alpha1.BackendPoolStatus)) error {
	err := c.statuses.update(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		fn(s)
		notesProblem(s)
	})
	if isGone(err) {
		return err
	}
	over := e.recovered()
	reason, why, turned := e.turned()
	switch {
	case over != "" && (p.Spec.Nodes != nil || c.Owner.Made(p) && slices.Contains(missingReasons, over)): // see tellOfNodes, and the case below
	case over != "":
		c.Events.OnPool(p, Event{Normal, EventUpdated, updatedMessage + ", after " + over})
	case !turned:
	case c.Owner.Made(p) && slices.Contains(missingReasons, reason):
		c.Owner.Missing(p) // not a user error: it was deleted with its rules, or is being recreated
	default:
		c.warn(p, reason, why)
	}
	return err
}

var missingReasons = []string{v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonLoadBalancerNotFound}

// recovered returns the problem that had an event if the pool is in sync now; else "".
func (e *Entry) recovered() (problem string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if syncedReason(e.status.Conditions) == v1alpha1.ReasonLevel {
		problem, e.lastProblem = e.lastProblem, ""
	}
	return problem
}

// turned returns a problem that has no event yet.
func (e *Entry) turned() (reason, why string, turned bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	reason = syncedReason(e.status.Conditions)
	if slices.Contains(noProblem, reason) {
		e.lastProblem = ""
	}
	if problem(e.status.Conditions) == "" || reason == e.lastProblem {
		return "", "", false
	}
	e.lastProblem = reason
	return reason, meta.FindStatusCondition(e.status.Conditions, v1alpha1.ConditionSynced).Message, true
}
