// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// recordLastEvent records the last event of an attempt in the status. own is the reason on a BackendPool of
// nodes.
func recordLastEvent(s *v1alpha1.BackendPoolStatus, p *v1alpha1.BackendPool, own string, r updater.Report) {
	t := lastEvent(s)
	if p.Spec.ServiceRef == nil {
		if own != "" {
			t.Reason, t.Service = own, ""
		}
	} else {
		name := schedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
		for _, event := range eventsOf(r) {
			if slices.Contains(event.to, name) {
				t.Reason, t.Service = event.reason, name.Name
			}
		}
	}
	t.GivenUpFor = humanize.FormatMessage(r.FailureReason, humanize.MaxCode)
	setLastEvent(s, t)
}

// recordProblem records the problem that the Synced condition shows. It returns the recorded one that ended because
// the pool is in sync, and a new one with its message.
func recordProblem(s *v1alpha1.BackendPoolStatus) (ended, began, message string) {
	t, reason := lastEvent(s), syncedReason(s.Conditions)
	switch {
	case problemReason(s.Conditions) != "":
		if reason != t.Problem {
			began, message = reason, meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced).Message
		}
		t.Problem = reason
	case slices.Contains(recoveredReasons, reason):
		if reason == v1alpha1.ReasonInSync {
			ended = t.Problem
		}
		t.Problem = ""
	}
	setLastEvent(s, t)
	return ended, began, message
}

// lastNotification returns the last event that an earlier process recorded for the Service; service is "" for a
// BackendPool of nodes.
func (e *Entry) lastNotification(service string) schedule.LastNotification {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := lastEvent(&e.status)
	if t.Service != service {
		return schedule.LastNotification{}
	}
	return schedule.LastNotification{IsFailure: t.Reason == EventRetrying || t.Reason == EventFailed, FailureReason: t.GivenUpFor}
}

func lastEvent(s *v1alpha1.BackendPoolStatus) v1alpha1.LastEvent {
	if s.LastEvent == nil {
		return v1alpha1.LastEvent{}
	}
	return *s.LastEvent
}

func setLastEvent(s *v1alpha1.BackendPoolStatus, t v1alpha1.LastEvent) {
	if s.LastEvent = nil; t != (v1alpha1.LastEvent{}) {
		s.LastEvent = &t
	}
}
