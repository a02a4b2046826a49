// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
)

func userRequests(p *v1alpha1.Provision) policy.Requests { return objects.ProvisionRequests(p) }

func desiredDigest(p *v1alpha1.Provision) string {
	return objects.ParseWanted(p).Job
}

func stateFromStatus(s *v1alpha1.ProvisionStatus) policy.State {
	waited, _ := time.ParseDuration(s.Waited)
	var endedAt time.Time
	if s.LastAttempt != nil {
		endedAt = s.LastAttempt.EndedAt.Time
	}
	return policy.State{
		EndedAt: endedAt, Phase: policy.Phase(s.State), SpecDigest: s.Job, Attempts: int(s.Attempts), Number: s.AttemptNumber, StartedAt: timeFrom(s.StartedAt),
		Since: timeFrom(s.WaitingSince), NotBefore: timeFrom(s.NotBefore), RetryRequested: s.Asked, TotalWait: waited,
		Cancelled: s.Cancelled, Repeat: s.Anew,
		HandledRequests: policy.Requests{Cancel: s.LastHandledCancelAt, RetryNow: s.LastHandledRetryNowAt, Reset: s.LastHandledResetAt},
	}
}

func storeState(s *v1alpha1.ProvisionStatus, state policy.State) {
	s.State, s.Job, s.Attempts, s.AttemptNumber = string(state.Phase), state.SpecDigest, int32(min(state.Attempts, 1<<30)), state.Number //nolint:gosec // bounded
	s.StartedAt, s.WaitingSince, s.NotBefore = microTime(state.StartedAt), microTime(state.Since), microTime(state.NotBefore)
	s.Asked, s.Cancelled, s.Anew = state.RetryRequested, state.Cancelled, state.Repeat
	s.Waited = ""
	if state.TotalWait > 0 {
		s.Waited = state.TotalWait.String()
	}
	s.LastHandledCancelAt, s.LastHandledRetryNowAt, s.LastHandledResetAt = state.HandledRequests.Cancel, state.HandledRequests.RetryNow, state.HandledRequests.Reset
}

func timeFrom(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: t.Truncate(time.Microsecond)}
}

func policyValues(values []policy.Value) []v1alpha1.PolicyValue {
	items := make([]v1alpha1.PolicyValue, len(values))
	for i, v := range values {
		items[i] = v1alpha1.PolicyValue(v)
	}
	return items
}

// setConditions sets the conditions and NextAttemptAt. policyErr is why the policy is invalid, if it is.
func setConditions(p *v1alpha1.Provision, retryPolicy policy.Policy, policyErr error) {
	s := &p.Status
	s.NextAttemptAt = nil
	if policyErr == nil && s.State == v1alpha1.ProvisionWaiting {
		s.NextAttemptAt = &metav1.Time{Time: humanize.RoundUpSecond(stateFromStatus(s).NextAttemptAt(retryPolicy))}
	}
	detail := "no attempt has ended yet"
	if last := s.LastAttempt; last != nil && last.Message != "" {
		detail = last.Message
	} else if last != nil {
		detail = "the last attempt has succeeded"
	}
	switch {
	case policyErr != nil && s.State != v1alpha1.ProvisionRunning:
		detail = policyErr.Error()
	case policyErr == nil && objects.HasRetryAfter(p):
		detail = fmt.Sprintf("the target allows no attempt before %s (Retry-After); the last one failed: %s", s.NotBefore.UTC().Format(time.RFC3339), detail)
	}
	condition := func(kind string, isTrue bool, reason, message string) {
		status := metav1.ConditionFalse
		if isTrue {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: humanize.FormatMessage(message, humanize.MaxMessage), ObservedGeneration: p.Generation,
		})
	}
	if policyErr != nil {
		condition(v1alpha1.ProvisionAccepted, false, "Invalid", policyErr.Error())
	} else {
		condition(v1alpha1.ProvisionAccepted, true, "Accepted", "the policy and the order of steps are valid")
	}
	reason := s.State
	if reason == "" {
		reason = "Pending"
	}
	condition(v1alpha1.ProvisionProgressing, s.State == v1alpha1.ProvisionRunning || s.State == v1alpha1.ProvisionWaiting, reason, detail)
	condition(v1alpha1.ProvisionReady, s.State == v1alpha1.ProvisionSucceeded, reason, detail)
	condition(v1alpha1.ProvisionConditionCancelled, s.Cancelled, reason, detail)
	condition(v1alpha1.ProvisionConditionFailed, s.State == v1alpha1.ProvisionFailed, reason, detail)
}
