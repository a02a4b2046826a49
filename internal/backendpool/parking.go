// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/words"
)

// park sets the Parked condition: no attempt before until.
func park(s *v1alpha1.BackendPoolStatus, generation int64, until time.Time, reason, why string) {
	s.NextEligibleAt = new(metav1.NewTime(words.WholeSecond(until)))
	setCondition(s, generation, v1alpha1.ConditionParked, metav1.ConditionTrue, reason, why)
}

func unpark(s *v1alpha1.BackendPoolStatus, generation int64) {
	s.NextEligibleAt = nil
	setCondition(s, generation, v1alpha1.ConditionParked, metav1.ConditionFalse, v1alpha1.ReasonNotParked, "")
}

// rests marks a pool without a pending update. An unexpired Retry-After is retained for the next attempt,
// also of another process.
func rests(s *v1alpha1.BackendPoolStatus, generation int64, now time.Time) {
	if !asked(s, now) {
		unpark(s, generation)
		return
	}
	until := s.NextEligibleAt.Time
	park(s, generation, until, v1alpha1.ReasonNothingWaits, patience(until)+"; no attempt waits for that time")
}

// stays marks a pool whose change waits for something else. An unexpired Retry-After is retained.
func stays(s *v1alpha1.BackendPoolStatus, generation int64, now time.Time) {
	switch {
	case !asked(s, now):
		unpark(s, generation)
	case parkedFor(s) == v1alpha1.ReasonNothingWaits:
		park(s, generation, s.NextEligibleAt.Time, v1alpha1.ReasonRetryAfter, patience(s.NextEligibleAt.Time))
	}
}

func asked(s *v1alpha1.BackendPoolStatus, now time.Time) bool {
	return s.NextEligibleAt != nil && s.NextEligibleAt.After(now)
}

func parkedFor(s *v1alpha1.BackendPoolStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionParked); c != nil {
		return c.Reason
	}
	return ""
}

// restsUntil returns when an idle pool stops being parked; zero if it is not parked, or if an attempt is
// pending, which clears it.
func restsUntil(s *v1alpha1.BackendPoolStatus) time.Time {
	if s.NextEligibleAt == nil || parkedFor(s) != v1alpha1.ReasonNothingWaits {
		return time.Time{}
	}
	return s.NextEligibleAt.Time
}

func (e *Entry) endsRest(generation int64, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until := restsUntil(&e.status); !until.IsZero() && !until.After(now) {
		e.amend(func(s *v1alpha1.BackendPoolStatus) { unpark(s, generation) })
	}
}

// believe adopts the persisted Retry-After, limited to the maximum: a status can be edited, and clocks can be
// wrong.
func (e *Entry) believe(generation int64, now time.Time) {
	if e.status.NextEligibleAt == nil {
		return
	}
	e.notBefore = e.status.NextEligibleAt.Time
	if latest := words.WholeSecond(now.Add(backoff.MaxRetryAfter)); e.notBefore.After(latest) {
		e.notBefore = latest
		// Persist the limit, or each restart would extend it.
		e.amend(func(s *v1alpha1.BackendPoolStatus) {
			park(s, generation, latest, v1alpha1.ReasonRetryAfter, patience(latest))
		})
	}
}
