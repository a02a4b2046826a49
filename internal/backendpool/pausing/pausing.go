// SPDX-License-Identifier: Apache-2.0

// Package pausing says of a BackendPool that people have paused whether it is, until when, and why. Whether it is
// paused at a moment its spec decides, for everybody.
package pausing

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/words"
)

// Reasons of the events on a BackendPool.
const (
	EventPaused  = "Paused"
	EventResumed = "Resumed"
)

// Text says that a pool is paused: until when, by whom, and why, as far as that is known.
func Text(p *v1alpha1.BackendPool) string {
	is := p.Spec.Pause
	if is == nil {
		return "spec.paused is set"
	}
	text := "paused"
	if is.Until != nil {
		text += " until " + words.Stamp(is.Until.Time)
	}
	if is.By != "" {
		text += "; said to be by " + is.By
	}
	if is.Why != "" {
		text += "; why: " + is.Why
	}
	return text
}

// Judge returns the Paused condition of a BackendPool.
func Judge(p *v1alpha1.BackendPool, now time.Time) (status metav1.ConditionStatus, reason, why string) {
	switch {
	case p.Spec.PausedAt(now):
		return metav1.ConditionTrue, v1alpha1.ReasonPaused, Text(p)
	case p.Spec.Paused:
		return metav1.ConditionFalse, v1alpha1.ReasonPauseEnded, "the pause ended at " + words.Stamp(p.Spec.Pause.Until.Time) + "; weir resume takes away what is left of it in the spec"
	}
	return metav1.ConditionFalse, v1alpha1.ReasonNotPaused, ""
}

// Said is what a status says of a pause; empty if nothing.
func Said(s *v1alpha1.BackendPoolStatus) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionPaused); c != nil {
		return c.Status
	}
	return ""
}

// Told is the event of a status that said one thing of a pause, and says another now; empty if it is none.
func Told(p *v1alpha1.BackendPool, before, now metav1.ConditionStatus) (reason, text string) {
	switch {
	case before == now:
	case now == metav1.ConditionTrue:
		return EventPaused, words.Sentence(Text(p)+": the pool stays as it is in Azure", words.MaxMessage)
	case before == metav1.ConditionTrue && p.Spec.Paused:
		return EventResumed, "The pause is over, as it was to be; the pool is kept level again"
	case before == metav1.ConditionTrue:
		return EventResumed, "The pool is kept level again"
	}
	return "", ""
}

// Sooner is when to look at a BackendPool again: after a time, 0 for never, or when its pause ends.
func Sooner(after time.Duration, p *v1alpha1.BackendPool, now time.Time) time.Duration {
	ends := p.Spec.PauseEnds(now)
	if ends.IsZero() || after != 0 && after <= ends.Sub(now) {
		return after
	}
	return ends.Sub(now)
}
