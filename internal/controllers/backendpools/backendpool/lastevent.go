// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"

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
			t.Word, t.Service = own, ""
		}
	} else {
		name := schedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
		for _, say := range eventsOf(r) {
			if slices.Contains(say.to, name) {
				t.Word, t.Service = say.reason, name.Name
			}
		}
	}
	t.GivenUpFor = humanize.FormatMessage(r.FailureReason, humanize.MaxCode)
	setLastEvent(s, t)
}

func recordLastProblem(s *v1alpha1.BackendPoolStatus) {
	t := lastEvent(s)
	if is := problemReason(s.Conditions); is != "" {
		t.Problem = is
	} else if slices.Contains(recoveredReasons, syncedReason(s.Conditions)) {
		t.Problem = ""
	}
	setLastEvent(s, t)
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
	return schedule.LastNotification{IsFailure: t.Word == EventRetrying || t.Word == EventFailed, FailureReason: t.GivenUpFor}
}

func lastEvent(s *v1alpha1.BackendPoolStatus) v1alpha1.LastEvent {
	if s.Told == nil {
		return v1alpha1.LastEvent{}
	}
	return *s.Told
}

func setLastEvent(s *v1alpha1.BackendPoolStatus, t v1alpha1.LastEvent) {
	if s.Told = nil; t != (v1alpha1.LastEvent{}) {
		s.Told = &t
	}
}
