// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// Report implements poolupdate.Reporter: the status, then events on the Services, so that
// whoever comes next knows of each that was said. A status that cannot be written is kept,
// and written through the work queue.
func (c *Cluster) Report(ctx context.Context, r poolupdate.Report) {
	defer c.tell(r)
	e := c.statuses.known(r.Ref)
	p := c.snap.pool(r.Ref)
	if e == nil || p == nil || r.Outcome == poolupdate.Shutdown {
		return
	}
	st := c.snap.standingOf(p)
	if r.Outcome == poolupdate.Postponed {
		c.postponed(ctx, p, e, st, r)
		return
	}
	word := ""
	if p.Spec.Nodes != nil && st.works() && !st.removes() {
		word = e.says(wordOf(r))
	}
	c.filled(p, r)
	set := e.remembered()
	c.hear(p, e, st, set, r)
	e.schedule(st, r, c.opts)
	began := len(r.Contested) > 0 && !e.contested()
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		note(s, set, r)
		hearsOf(s, p, word, r)
		contest(s, r, p.Generation)
		judge(s, st, set, r, p.Generation)
	})
	c.events.tellOfNodes(p, word, r)
	if began && !errors.Is(err, errGone) {
		c.events.warn(p, EventPoolContested, contestedText(r.Contested))
	}
	if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		c.opts.Log.WarnContext(ctx, "status not written, trying again", "backendPool", key(p.Namespace, p.Name), "err", err)
	}
	// The work queue writes what could not be written, and knows when to look again.
	c.wake.add(r.Ref)
}

// postponed says what a pool waits for that nobody's retry pays for. If the API server
// does not take it, it is that which the pool waits for: the log has it.
func (c *Cluster) postponed(ctx context.Context, p *v1alpha1.BackendPool, e *entry, st standing, r poolupdate.Report) {
	if !st.works() {
		return
	}
	err := c.change(ctx, p, e, func(s *v1alpha1.BackendPoolStatus) {
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, r.Fault.Error())
	})
	if err != nil && !errors.Is(err, errGone) {
		c.opts.Log.DebugContext(ctx, "status not written", "backendPool", key(p.Namespace, p.Name), "err", err)
	}
}

// change updates the status of a BackendPool, and puts an event on it when that turned
// it into a problem.
func (c *Cluster) change(ctx context.Context, p *v1alpha1.BackendPool, e *entry, fn func(*v1alpha1.BackendPoolStatus)) error {
	err := c.statuses.update(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		fn(s)
		hearsOfProblem(s)
	})
	if errors.Is(err, errGone) {
		return err
	}
	reason, why, turned := e.turned()
	switch {
	case !turned:
	case c.snap.made(p) && slices.Contains(missingReasons, reason):
		c.missing(p) // nobody's trouble: it has just gone with its rules, or is made again
	default:
		c.events.warn(p, reason, why)
	}
	return err
}

// missingReasons are those of a pool that Azure does not have.
var missingReasons = []string{v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonLoadBalancerNotFound}

// turned reports a problem that no event spoke of yet.
func (e *entry) turned() (reason, why string, turned bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	reason = syncedReason(e.status.Conditions)
	if slices.Contains(noProblem, reason) {
		e.told = ""
	}
	if problem(e.status.Conditions) == "" || reason == e.told {
		return "", "", false
	}
	e.told = reason
	return reason, meta.FindStatusCondition(e.status.Conditions, v1alpha1.ConditionSynced).Message, true
}

// schedule decides when to look again although nothing changes.
func (e *entry) schedule(st standing, r poolupdate.Report, opts Options) {
	e.mu.Lock()
	defer e.mu.Unlock()
	missing := r.Outcome == poolupdate.Stale || r.Outcome == poolupdate.Refused
	e.reportedAt = r.At
	e.missing = (missing || e.missing && !r.Settled) && !r.States
	if r.Outcome == poolupdate.Stale && r.Fault != nil && r.Fault.Code == fault.CodeNotFound && !e.unnamed {
		// A 404 that names nothing may be a proxy's: before our addresses are given up,
		// it has to come twice.
		e.unnamed, missing = true, missing && !st.removes()
	} else {
		e.unnamed = false
	}
	switch {
	// A pool that is gone, or was made anew for network interfaces, holds none of ours. One
	// whose interfaces an attempt still had members for may have just got a state of ours.
	case st.removes() && (missing && st.deleting && (!r.States || r.Desired == 0) || r.Settled && len(r.Written) == 0):
		e.released, e.recheckAt = st.deleting, time.Time{}
	case st.removes() && !missing:
		e.recheckAt = r.At.Add(opts.ReleaseAgainAfter)
	case e.missing: // also if Azure failed when it was asked again
		e.recheckAt = r.At.Add(opts.RecheckAfter)
	default:
		e.recheckAt = time.Time{}
	}
}

// note keeps what an attempt found out, whatever the BackendPool is entitled to by now.
func note(s *v1alpha1.BackendPoolStatus, set membership.Set, r poolupdate.Report) {
	at := metav1.NewTime(r.At).Rfc3339Copy()
	if r.Observed >= 0 && r.Outcome != poolupdate.Refused {
		s.Desired, s.Observed, s.Foreign = new(int32(r.Desired)), new(int32(r.Observed)), new(int32(r.Foreign)) //nolint:gosec // a pool has at most some thousands
	}
	if r.Outcome == poolupdate.Written {
		s.LastWrite = &at
	}
	if r.Settled {
		s.PoolID = r.Pool.String()
		s.WrittenAddresses = formatAddresses(r.Written)
		setDown(s, r.Down, set, at)
	}
	if r.States {
		setDown(s, r.Down, set, at)
	}
	outcome := v1alpha1.AttemptOutcome{Class: string(r.Outcome), Since: at}
	if r.Fault != nil {
		outcome.Code = sentence(r.Fault.Code, maxCode)
	}
	if s.LastOutcome == nil || s.LastOutcome.Class != outcome.Class || s.LastOutcome.Code != outcome.Code {
		s.LastOutcome = &outcome
	}
	s.RetriesUsed = new(int32(r.RetriesUsed)) //nolint:gosec // bounded by the budget
	s.RetryBudget = new(int32(r.Budget))      //nolint:gosec // as above
	if r.Settled {
		s.RetriesUsed = new(int32(0))
	}
}

// judge sets the conditions after an attempt. A BackendPool that was paused or lost its
// claim meanwhile keeps saying so.
func judge(s *v1alpha1.BackendPoolStatus, st standing, set membership.Set, r poolupdate.Report, generation int64) {
	if r.NextEligibleAt.After(r.At) {
		park(s, generation, r.NextEligibleAt, v1alpha1.ReasonRetryAfter, patience(r.NextEligibleAt))
	} else {
		unpark(s, generation)
	}
	if !r.Requeued && r.AdminRetryAt.IsZero() {
		rests(s, generation, r.At)
	}
	if !st.works() {
		return
	}
	status, reason, why := metav1.ConditionFalse, "", ""
	switch {
	case r.Settled && st.removes():
		reason, why = removed(st, len(s.WrittenAddresses) > 0)
	case r.Settled:
		status, reason, why = metav1.ConditionTrue, v1alpha1.ReasonLevel, levelMessage(set)
	case r.Outcome == poolupdate.Stale:
		reason, why = missingPool(r)
	case r.Outcome == poolupdate.Refused:
		reason, why = v1alpha1.ReasonNICPool, describePool(r.Pool)+" holds network interfaces, which Weir does not write: name a pool of IP addresses"
		if r.States {
			why += ". Nodes that leave are Down in it all the same"
		}
	case r.Admin && !r.AdminRetryAt.IsZero(), !r.Requeued && !r.AdminRetryAt.IsZero():
		reason, why = v1alpha1.ReasonRetrying, adminRetryingMessage(r)
	case r.Requeued:
		reason, why = v1alpha1.ReasonRetrying, retryingMessage(r)
	case st.removes():
		reason, why = v1alpha1.ReasonFailed, removalFailedMessage(r)
	default:
		reason, why = v1alpha1.ReasonFailed, failedMessage(r)
	}
	if r.Settled && r.MayLand {
		why += "; " + mayLandMessage
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, status, reason, why)
}

func setCondition(s *v1alpha1.BackendPoolStatus, generation int64, kind string, status metav1.ConditionStatus, reason, why string) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: sentence(why, maxMessage), ObservedGeneration: generation,
	})
}

func syncedReason(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return ""
}

// problems are the reasons that a person has to do something about.
var problems = []string{
	v1alpha1.ReasonFailed, v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound,
	v1alpha1.ReasonNICPool, v1alpha1.ReasonDuplicate, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonServiceNotFound,
	v1alpha1.ReasonServiceUnfit, v1alpha1.ReasonInvalid,
}

// noProblem are those with which a problem is over: if it comes back, that is news.
var noProblem = []string{v1alpha1.ReasonLevel, v1alpha1.ReasonPaused, v1alpha1.ReasonDryRun}

// problem returns the reason of the Synced condition if it is a problem, else "".
func problem(conditions []metav1.Condition) string {
	if reason := syncedReason(conditions); slices.Contains(problems, reason) {
		return reason
	}
	return ""
}
