// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
)

// Event reasons on a BackendPool.
const (
	EventPaused  = "Paused"
	EventResumed = "Resumed"
)

// DescribePause describes a pause: until when, by which user, and why, as far as known.
func DescribePause(p *v1alpha1.BackendPool) string {
	pause := p.Spec.Pause
	if pause == nil {
		return "spec.paused is set"
	}
	text := "paused"
	if pause.Until != nil {
		text += " until " + humanize.FormatTime(pause.Until.Time)
	}
	if pause.By != "" {
		text += "; reported by " + pause.By
	}
	if pause.Why != "" {
		text += "; why: " + pause.Why
	}
	return text
}

// PausedCondition returns the Paused condition of a BackendPool.
func PausedCondition(p *v1alpha1.BackendPool, now time.Time) (status metav1.ConditionStatus, reason, message string) {
	switch {
	case p.Spec.IsPausedAt(now):
		return metav1.ConditionTrue, v1alpha1.ReasonPaused, DescribePause(p)
	case p.Spec.Paused:
		return metav1.ConditionFalse, v1alpha1.ReasonPauseEnded, "the pause ended at " + humanize.FormatTime(p.Spec.Pause.Until.Time) + "; weir resume removes its fields from the spec"
	}
	return metav1.ConditionFalse, v1alpha1.ReasonNotPaused, ""
}

// PausedStatus returns the status of the Paused condition; empty if not set.
func PausedStatus(s *v1alpha1.BackendPoolStatus) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionPaused); c != nil {
		return c.Status
	}
	return ""
}

// PauseEvent returns the event for a change of the Paused condition; empty if none.
func PauseEvent(p *v1alpha1.BackendPool, before, after metav1.ConditionStatus) (reason, text string) {
	switch {
	case before == after:
	case after == metav1.ConditionTrue:
		return EventPaused, humanize.FormatMessage(DescribePause(p)+": the pool remains unchanged in Azure", humanize.MaxMessage)
	case before == metav1.ConditionTrue && p.Spec.Paused:
		return EventResumed, "The pause has ended as scheduled; the pool is kept in sync again"
	case before == metav1.ConditionTrue:
		return EventResumed, "The pool is kept in sync again"
	}
	return "", ""
}

// RequeueAfter returns the earlier of after (0 for never) and the end of the pause.
func RequeueAfter(after time.Duration, p *v1alpha1.BackendPool, now time.Time) time.Duration {
	ends := p.Spec.PauseEndTime(now)
	if ends.IsZero() || after != 0 && after <= ends.Sub(now) {
		return after
	}
	return ends.Sub(now)
}
