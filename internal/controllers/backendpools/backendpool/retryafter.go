// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/ratelimit"
)

// setParked sets the Parked condition: no attempt before until.
func setParked(s *v1alpha1.BackendPoolStatus, generation int64, until time.Time, reason, message string) {
	s.NextEligibleAt = new(metav1.NewTime(humanize.RoundUpSecond(until)))
	setCondition(s, generation, v1alpha1.ConditionParked, metav1.ConditionTrue, reason, message)
}

func clearParked(s *v1alpha1.BackendPoolStatus, generation int64) {
	s.NextEligibleAt = nil
	setCondition(s, generation, v1alpha1.ConditionParked, metav1.ConditionFalse, v1alpha1.ReasonNotParked, "")
}

// setIdle marks a pool without a pending update. An unexpired Retry-After is retained for the next attempt,
// also of another process.
func setIdle(s *v1alpha1.BackendPoolStatus, generation int64, now time.Time) {
	if !hasRetryAfter(s, now) {
		clearParked(s, generation)
		return
	}
	until := s.NextEligibleAt.Time
	setParked(s, generation, until, v1alpha1.ReasonNothingWaits, retryAfterMessage(until)+"; no attempt waits for that time")
}

// setBlocked marks a pool whose change waits for something else. An unexpired Retry-After is retained.
func setBlocked(s *v1alpha1.BackendPoolStatus, generation int64, now time.Time) {
	switch {
	case !hasRetryAfter(s, now):
		clearParked(s, generation)
	case parkedReason(s) == v1alpha1.ReasonNothingWaits:
		setParked(s, generation, s.NextEligibleAt.Time, v1alpha1.ReasonRetryAfter, retryAfterMessage(s.NextEligibleAt.Time))
	}
}

func hasRetryAfter(s *v1alpha1.BackendPoolStatus, now time.Time) bool {
	return s.NextEligibleAt != nil && s.NextEligibleAt.After(now)
}

func parkedReason(s *v1alpha1.BackendPoolStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionParked); c != nil {
		return c.Reason
	}
	return ""
}

// idleUntil returns when an idle pool stops being parked; zero if it is not parked, or if an attempt is
// pending, which clears it.
func idleUntil(s *v1alpha1.BackendPoolStatus) time.Time {
	if s.NextEligibleAt == nil || parkedReason(s) != v1alpha1.ReasonNothingWaits {
		return time.Time{}
	}
	return s.NextEligibleAt.Time
}

func (e *Entry) clearExpiredRetryAfter(generation int64, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until := idleUntil(&e.status); !until.IsZero() && !until.After(now) {
		e.changeStatus(func(s *v1alpha1.BackendPoolStatus) { clearParked(s, generation) })
	}
}

// adoptPersistedRetryAfter adopts the persisted Retry-After, limited to the maximum: a status can be edited, and clocks can be
// wrong.
func (e *Entry) adoptPersistedRetryAfter(generation int64, now time.Time) {
	if e.status.NextEligibleAt == nil {
		return
	}
	e.notBefore = e.status.NextEligibleAt.Time
	if latest := humanize.RoundUpSecond(now.Add(ratelimit.MaxRetryAfter)); e.notBefore.After(latest) {
		e.notBefore = latest
		// Persist the limit, or each restart would extend it.
		e.changeStatus(func(s *v1alpha1.BackendPoolStatus) {
			setParked(s, generation, latest, v1alpha1.ReasonRetryAfter, retryAfterMessage(latest))
		})
	}
}
