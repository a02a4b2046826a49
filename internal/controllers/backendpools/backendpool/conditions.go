// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/updater"
)

// recordAttempt records the result of an attempt, even if the BackendPool may no longer update the pool.
func recordAttempt(s *v1alpha1.BackendPoolStatus, set membership.Set, r updater.Report) {
	at := metav1.NewTime(r.At).Rfc3339Copy()
	if r.Observed >= 0 && r.Outcome != diff.Rejected {
		s.Desired, s.Observed, s.Foreign = new(int32(r.Desired)), new(int32(r.Observed)), new(int32(r.Foreign)) //nolint:gosec // a pool has at most some thousands
	}
	if r.Outcome == diff.Stale && s.Observed != nil {
		s.Observed, s.Foreign = new(int32(0)), nil
	}
	if r.Outcome == diff.Written {
		s.LastWrite = &at
	}
	if r.InSync {
		s.PoolID = r.Pool.String()
		s.WrittenAddresses, s.WrittenInstances = FormatAddresses(r.Written), FormatInstances(r.Instances)
		s.Unusable = FormatUnusable(r.Unusable)
		SetDown(s, r.Down, set, at)
	}
	if r.StatesInSync {
		SetDown(s, r.Down, set, at)
	}
	outcome := v1alpha1.AttemptOutcome{Class: string(r.Outcome), Since: at}
	if r.Fault != nil {
		outcome.Code = humanize.FormatMessage(r.Fault.Code, humanize.MaxCode)
	}
	if r.Outcome != diff.Postponed && !hasOutcome(s.LastOutcome, outcome) {
		s.LastOutcome = &outcome
	}
	s.RetriesUsed = new(int32(r.RetriesUsed)) //nolint:gosec // bounded by the budget
	s.RetryBudget = new(int32(r.Budget))      //nolint:gosec // as above
	if r.InSync {
		s.RetriesUsed = new(int32(0))
	}
}

// hasOutcome reports whether the status already records the outcome. Unchanged after Written is not a new outcome.
func hasOutcome(last *v1alpha1.AttemptOutcome, outcome v1alpha1.AttemptOutcome) bool {
	if last == nil {
		return false
	}
	found := outcome.Class == string(diff.Unchanged) && last.Class == string(diff.Written)
	return found || last.Class == outcome.Class && last.Code == outcome.Code
}

// setAttemptConditions sets the conditions after an attempt. A paused BackendPool, or one that lost its pool, keeps its
// Synced condition.
func setAttemptConditions(s *v1alpha1.BackendPoolStatus, binding Binding, set membership.Set, r updater.Report, generation int64) {
	if r.NextEligibleAt.After(r.At) {
		setParked(s, generation, r.NextEligibleAt, v1alpha1.ReasonRetryAfter, retryAfterMessage(r.NextEligibleAt))
	} else {
		clearParked(s, generation)
	}
	if !r.WillRetry && r.AdminRetryAt.IsZero() {
		setIdle(s, generation, r.At)
	}
	if !binding.AllowsUpdates() {
		return
	}
	status, reason, message := metav1.ConditionFalse, "", ""
	switch {
	case r.InSync && binding.RemovesMembers():
		reason, message = removalMessage(binding, len(s.WrittenAddresses) > 0)
	case r.InSync:
		status, reason, message = metav1.ConditionTrue, v1alpha1.ReasonInSync, InSyncMessage(WithoutUnusable(set, r.Unusable))
	case r.Outcome == diff.Stale:
		reason, message = missingPoolMessage(r)
	case r.Outcome == diff.Rejected:
		reason, message = wrongMembersMessage(r)
	case r.Outcome == diff.Postponed:
		reason, message = v1alpha1.ReasonUpdating, r.Fault.Error()
	case r.Admin && !r.AdminRetryAt.IsZero(), !r.WillRetry && !r.AdminRetryAt.IsZero():
		reason, message = v1alpha1.ReasonRetrying, adminRetryingMessage(r)
	case r.WillRetry:
		reason, message = v1alpha1.ReasonRetrying, retryingMessage(r)
	case binding.RemovesMembers():
		reason, message = v1alpha1.ReasonFailed, removalFailedMessage(r)
	default:
		reason, message = v1alpha1.ReasonFailed, failedMessage(r)
	}
	if r.InSync && r.HasPendingWrite {
		message += "; " + pendingWriteMessage
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, status, reason, message)
}

func setCondition(s *v1alpha1.BackendPoolStatus, generation int64, kind string, status metav1.ConditionStatus, reason, message string) {
	message = humanize.FormatMessage(message, humanize.MaxMessage)
	if cond := meta.FindStatusCondition(s.Conditions, kind); cond != nil && humanize.EqualMessages(cond.Message, message) {
		message = cond.Message // do not write a status that differs only in a request ID of Azure
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
}

func syncedReason(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSynced); c != nil {
		return c.Reason
	}
	return ""
}

// problemReasons are the reasons that require user action.
var problemReasons = []string{
	v1alpha1.ReasonFailed, v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound,
	v1alpha1.ReasonNICPool, v1alpha1.ReasonAddressPool, v1alpha1.ReasonOverlappingNodes, v1alpha1.ReasonDuplicate, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonServiceNotFound,
	v1alpha1.ReasonServiceUnfit, v1alpha1.ReasonInvalid,
}

// recoveredReasons are the reasons that end a problem: its recurrence gets a new event.
var recoveredReasons = []string{v1alpha1.ReasonInSync, v1alpha1.ReasonPaused, v1alpha1.ReasonDryRun}

func problemReason(conditions []metav1.Condition) string {
	if reason := syncedReason(conditions); slices.Contains(problemReasons, reason) {
		return reason
	}
	return ""
}

// attemptReasons are the reasons set by attempts. They remain until the next attempt.
var attemptReasons = []string{
	v1alpha1.ReasonInSync, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed,
	v1alpha1.ReasonLoadBalancerNotFound, v1alpha1.ReasonPoolNotFound, v1alpha1.ReasonNICPool, v1alpha1.ReasonAddressPool, v1alpha1.ReasonOverlappingNodes,
}

// failureReasons are the attempted reasons that mean failure.
var failureReasons = []string{v1alpha1.ReasonRetrying, v1alpha1.ReasonFailed}

// setSpecConditions sets the conditions that do not depend on an attempt.
func setSpecConditions(s *v1alpha1.BackendPoolStatus, p *v1alpha1.BackendPool, now time.Time) {
	if parkedReason(s) == "" {
		setIdle(s, p.Generation, now)
	}
	status, reason, message := PausedCondition(p, now)
	setCondition(s, p.Generation, v1alpha1.ConditionPaused, status, reason, message)
}

// setPlanned records what would change in Azure without dry run.
func setPlanned(s *v1alpha1.BackendPoolStatus, generation int64, text string) {
	setCondition(s, generation, v1alpha1.ConditionDryRun, metav1.ConditionTrue, "Planned", text)
}

func clearPlanned(s *v1alpha1.BackendPoolStatus) {
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDryRun)
}
