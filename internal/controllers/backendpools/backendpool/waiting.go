// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/updater"
)

// ReportWait implements updater.Reporter. It does not block: the work queue writes the status.
func (c *Controller) ReportWait(w updater.Waiting) {
	e, p := c.lookupEntry(w.Ref)
	if p == nil {
		return
	}
	now := time.Now()
	binding := c.ResolveBinding(p, now)
	if !binding.AllowsUpdates() || binding.Pool.Key() != w.Pool.Key() {
		return
	}
	desired := 0
	if !binding.RemovesMembers() {
		set, err := membersOf(c, p, e)
		if err != nil {
			return // the reconciler reports the error
		}
		desired = len(set.Addresses)
	}
	if e.recordWait(p.Generation, w, desired, now) {
		c.Queue(w.Ref)
	}
}

// recordWait records why a change waits, unless an attempt has ended since.
func (e *Entry) recordWait(generation int64, w updater.Waiting, desired int, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reportedAt.After(w.Since) {
		return false
	}
	e.changeStatusLater(now, func(s *v1alpha1.BackendPoolStatus) { setWaitConditions(s, generation, w, desired, now) })
	return true
}

// setWaitConditions sets the conditions of a waiting change and retains the last error. For a read without a change, only
// the Parked condition is set.
func setWaitConditions(s *v1alpha1.BackendPoolStatus, generation int64, w updater.Waiting, desired int, now time.Time) {
	setBlocked(s, generation, now)
	switch w.Cause {
	case updater.CauseGate:
		setParked(s, generation, w.Until, v1alpha1.ReasonGateClosed, w.Message)
	case updater.CauseRetryAfter:
		setParked(s, generation, w.Until, v1alpha1.ReasonRetryAfter, retryAfterMessage(w.Until))
	}
	if w.CheckOnly {
		return
	}
	s.Desired = new(int32(desired)) //nolint:gosec // a pool has at most some thousands
	reason, text := v1alpha1.ReasonUpdating, "a change waits"
	switch synced := syncedReason(s.Conditions); {
	case s.LastOutcome == nil:
	case synced == v1alpha1.ReasonFailed && s.LastOutcome.Code != "":
		reason, text = v1alpha1.ReasonFailed, "the last attempt failed: "+s.LastOutcome.Code+"; a later change waits"
	case synced == v1alpha1.ReasonRetrying:
		reason = v1alpha1.ReasonRetrying
		text = fmt.Sprintf("the last attempt failed: %s; retry %d of %d waits", s.LastOutcome.Code, int32Value(s.RetriesUsed), int32Value(s.RetryBudget))
	}
	message := ""
	switch w.Cause {
	case updater.CauseGate, updater.CauseLease:
		message = ": " + w.Message
	case updater.CauseRetryAfter:
		message = ", because " + retryAfterMessage(w.Until)
	case updater.CausePace:
		if reason == v1alpha1.ReasonUpdating {
			reason = v1alpha1.ReasonPace
		}
		message = ", because the pool keeps changing and the subscription's writes are kept to a pace; it is due at " + humanize.FormatTime(w.Until)
	case updater.CauseShare:
		if reason == v1alpha1.ReasonUpdating {
			reason = v1alpha1.ReasonDeferred
		}
		message = ": " + w.Message
	case updater.CauseBehind:
		message = ": another write on its load balancer comes first"
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, text+message)
}

func int32Value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
