// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// Wait implements poolupdate.Reporter. It waits for nobody: the status is changed in
// memory, and the work queue writes it.
func (c *Cluster) Wait(w poolupdate.Waiting) {
	e := c.statuses.known(w.Ref)
	p := c.snap.pool(w.Ref)
	if e == nil || p == nil {
		return
	}
	st := c.snap.standingOf(p)
	if !st.works() || st.pool.Key() != w.Pool.Key() {
		return
	}
	desired := 0
	if !st.removes() {
		set, err := c.snap.members(p)
		if err != nil {
			return // the reconciler says so
		}
		desired = len(set.Addresses)
	}
	e.mu.Lock()
	if e.reportedAt.After(w.Since) { // an attempt has ended meanwhile, and said what it found
		e.mu.Unlock()
		return
	}
	e.amend(func(s *v1alpha1.BackendPoolStatus) { wait(s, p.Generation, w, desired, time.Now()) })
	e.mu.Unlock()
	c.wake.add(w.Ref)
}

// wait says what a change waits for. What the last attempt met stays in sight.
// Of a pool that is only looked at nothing new is known but until when that is put off.
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
		why = ", because requests are kept to a pace; it is due at " + stamp(w.Until)
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
