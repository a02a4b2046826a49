// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"slices"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/words"
)

// notesEvents records the last event of an attempt in the status. own is the reason on a BackendPool of
// nodes.
func notesEvents(s *v1alpha1.BackendPoolStatus, p *v1alpha1.BackendPool, own string, r poolupdate.Report) {
	t := lastEvent(s)
	if p.Spec.ServiceRef == nil {
		if own != "" {
			t.Word, t.Service = own, ""
		}
	} else {
		name := poolschedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
		for _, say := range saidOf(r) {
			if slices.Contains(say.to, name) {
				t.Word, t.Service = say.reason, name.Name
			}
		}
	}
	t.GivenUpFor = words.Sentence(r.GivenUpFor, words.MaxCode)
	setLastEvent(s, t)
}

func notesProblem(s *v1alpha1.BackendPoolStatus) {
	t := lastEvent(s)
	if is := problem(s.Conditions); is != "" {
		t.Problem = is
	} else if slices.Contains(noProblem, syncedReason(s.Conditions)) {
		t.Problem = ""
	}
	setLastEvent(s, t)
}

// lastTold returns the last event that an earlier process recorded for the Service; service is "" for a
// BackendPool of nodes.
func (e *Entry) lastTold(service string) poolschedule.Told {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := lastEvent(&e.status)
	if t.Service != service {
		return poolschedule.Told{}
	}
	return poolschedule.Told{Failure: t.Word == EventRetrying || t.Word == EventFailed, GivenUpFor: t.GivenUpFor}
}

func lastEvent(s *v1alpha1.BackendPoolStatus) v1alpha1.Told {
	if s.Told == nil {
		return v1alpha1.Told{}
	}
	return *s.Told
}

func setLastEvent(s *v1alpha1.BackendPoolStatus, t v1alpha1.Told) {
	if s.Told = nil; t != (v1alpha1.Told{}) {
		s.Told = &t
	}
}
