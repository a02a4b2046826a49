// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/backendpool/pausing"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/words"
)

// note records the result of an attempt, whatever the current entitlement is.
func note(s *v1alpha1.BackendPoolStatus, set membership.Set, r poolupdate.Report) {
	at := metav1.NewTime(r.At).Rfc3339Copy()
	if r.Observed >= 0 && r.Outcome != poolwrite.Refused {
		s.Desired, s.Observed, s.Foreign = new(int32(r.Desired)), new(int32(r.Observed)), new(int32(r.Foreign)) //nolint:gosec // a pool has at most some thousands
	}
	if r.Outcome == poolwrite.Written {
		s.LastWrite = &at
	}
	if r.Settled {
		s.PoolID = r.Pool.String()
		s.WrittenAddresses, s.WrittenInstances = members.Format(r.Written), members.FormatInstances(r.Instances)
		s.Unusable = members.Unusable(r.Unusable)
		members.SetDown(s, r.Down, set, at)
	}
	if r.States {
		members.SetDown(s, r.Down, set, at)
	}
	outcome := v1alpha1.AttemptOutcome{Class: string(r.Outcome), Since: at}
	if r.Fault != nil {
		outcome.Code = words.Sentence(r.Fault.Code, words.MaxCode)
	}
	if r.Outcome != poolwrite.Postponed && !says(s.LastOutcome, outcome) {
		s.LastOutcome = &outcome
	}
	s.RetriesUsed = new(int32(r.RetriesUsed)) //nolint:gosec // bounded by the budget
	s.RetryBudget = new(int32(r.Budget))      //nolint:gosec // as above
	if r.Settled {
		s.RetriesUsed = new(int32(0))
	}
}

// says reports whether the status already records the outcome. Unchanged after Written is not a new outcome.
func says(last *v1alpha1.AttemptOutcome, outcome v1alpha1.AttemptOutcome) bool {
	if last == nil {
		return false
	}
	found := outcome.Class == string(poolwrite.Unchanged) && last.Class == string(poolwrite.Written)
	return found || last.Class == outcome.Class && last.Code == outcome.Code
}

// judge sets the conditions after an attempt. A paused BackendPool, or one that lost its pool, keeps its
// Synced condition.
func judge(s *v1alpha1.BackendPoolStatus, is Entitlement, set membership.Set, r poolupdate.Report, generation int64) {
	if r.NextEligibleAt.After(r.At) {
		park(s, generation, r.NextEligibleAt, v1alpha1.ReasonRetryAfter, patience(r.NextEligibleAt))
	} else {
		unpark(s, generation)
	}
	if !r.Requeued && r.AdminRetryAt.IsZero() {
		rests(s, generation, r.At)
	}
	if !is.Works() {
		return
	}
	status, reason, why := metav1.ConditionFalse, "", ""
	switch {
	case r.Settled && is.Removes():
		reason, why = removed(is, len(s.WrittenAddresses) > 0)
	case r.Settled:
		status, reason, why = metav1.ConditionTrue, v1alpha1.ReasonLevel, members.LevelMessage(members.Without(set, r.Unusable))
	case r.Outcome == poolwrite.Stale:
		reason, why = missingPool(r)
	case r.Outcome == poolwrite.Refused:
		reason, why = refusedPool(r)
	case r.Outcome == poolwrite.Postponed:
		reason, why = v1alpha1.ReasonUpdating, r.Fault.Error()
	case r.Admin && !r.AdminRetryAt.IsZero(), !r.Requeued && !r.AdminRetryAt.IsZero():
		reason, why = v1alpha1.ReasonRetrying, adminRetryingMessage(r)
	case r.Requeued:
		reason, why = v1alpha1.ReasonRetrying, retryingMessage(r)
	case is.Removes():
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
	why = words.Sentence(why, words.MaxMessage)
	if is := meta.FindStatusCondition(s.Conditions, kind); is != nil && words.Same(is.Message, why) {
		why = is.Message // do not write a status that differs only in a request ID of Azure
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: why, ObservedGeneration: generation})
}

func syncedReason(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return ""
}

// problems are the reasons that require user action.
var problems = []string{
	v1alpha1.ReasonFailed, v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound,
	v1alpha1.ReasonNICPool, v1alpha1.ReasonAddressPool, v1alpha1.ReasonDuplicate, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonServiceNotFound,
	v1alpha1.ReasonServiceUnfit, v1alpha1.ReasonInvalid,
}

// noProblem are the reasons that end a problem: its recurrence gets a new event.
var noProblem = []string{v1alpha1.ReasonLevel, v1alpha1.ReasonPaused, v1alpha1.ReasonDryRun}

func problem(conditions []metav1.Condition) string {
	if reason := syncedReason(conditions); slices.Contains(problems, reason) {
		return reason
	}
	return ""
}

// attempted are the reasons set by attempts. They remain until the next attempt.
var attempted = []string{
	v1alpha1.ReasonLevel, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed,
	v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonNICPool, v1alpha1.ReasonAddressPool,
}

// unlevel are the attempted reasons that mean failure.
var unlevel = []string{v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed}

// settleConditions sets the conditions that do not depend on an attempt.
func settleConditions(s *v1alpha1.BackendPoolStatus, p *v1alpha1.BackendPool, now time.Time) {
	if parkedFor(s) == "" {
		rests(s, p.Generation, now)
	}
	status, reason, why := pausing.Judge(p, now)
	setCondition(s, p.Generation, v1alpha1.ConditionPaused, status, reason, why)
}

// setRehearsed records what would change in Azure without dry run.
func setRehearsed(s *v1alpha1.BackendPoolStatus, generation int64, text string) {
	setCondition(s, generation, v1alpha1.ConditionDryRun, metav1.ConditionTrue, "Planned", text)
}

func settleRehearsed(s *v1alpha1.BackendPoolStatus) {
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDryRun)
}
