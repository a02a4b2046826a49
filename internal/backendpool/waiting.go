// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/words"
)

// Wait implements poolupdate.Reporter. It does not block: the work queue writes the status.
func (c *Controller) Wait(w poolupdate.Waiting) {
	e, p := c.known(w.Ref)
	if p == nil {
		return
	}
	now := time.Now()
	is := c.Entitlement(p, now)
	if !is.Works() || is.Pool.Key() != w.Pool.Key() {
		return
	}
	desired := 0
	if !is.Removes() {
		set, err := membersOf(c, p, e)
		if err != nil {
			return // the reconciler reports the error
		}
		desired = len(set.Addresses)
	}
	if e.waits(p.Generation, w, desired, now) {
		c.Queue(w.Ref)
	}
}

// waits records why a change waits, unless an attempt has ended since.
func (e *Entry) waits(generation int64, w poolupdate.Waiting, desired int, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reportedAt.After(w.Since) {
		return false
	}
	e.amendSoon(now, func(s *v1alpha1.BackendPoolStatus) { wait(s, generation, w, desired, now) })
	return true
}

// wait sets the conditions of a waiting change and retains the last error. For a read without a change, only
// the Parked condition is set.
func wait(s *v1alpha1.BackendPoolStatus, generation int64, w poolupdate.Waiting, desired int, now time.Time) {
	stays(s, generation, now)
	switch w.Cause {
	case poolupdate.CauseGate:
		park(s, generation, w.Until, v1alpha1.ReasonGateClosed, w.Why)
	case poolupdate.CauseRetryAfter:
		park(s, generation, w.Until, v1alpha1.ReasonRetryAfter, patience(w.Until))
	}
	if w.Look {
		return
	}
	s.Desired = new(int32(desired)) //nolint:gosec // a pool has at most some thousands
	reason, what := v1alpha1.ReasonUpdating, "a change waits"
	if s.LastOutcome != nil && syncedReason(s.Conditions) == v1alpha1.ReasonRetrying {
		reason = v1alpha1.ReasonRetrying
		what = fmt.Sprintf("the last attempt failed: %s; retry %d of %d waits", s.LastOutcome.Code, value(s.RetriesUsed), value(s.RetryBudget))
	}
	why := ""
	switch w.Cause {
	case poolupdate.CauseGate, poolupdate.CauseLease:
		why = ": " + w.Why
	case poolupdate.CauseRetryAfter:
		why = ", because " + patience(w.Until)
	case poolupdate.CausePace:
		if reason == v1alpha1.ReasonUpdating {
			reason = v1alpha1.ReasonPace
		}
		why = ", because the pool keeps changing and the subscription's writes are kept to a pace; it is due at " + words.Stamp(w.Until)
	case poolupdate.CauseShare:
		if reason == v1alpha1.ReasonUpdating {
			reason = v1alpha1.ReasonDeferred
		}
		why = ": " + w.Why
	case poolupdate.CauseBehind:
		why = ": something else on its load balancer goes first"
	}
	setCondition(s, generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, what+why)
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
