// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

func TestJudge(t *testing.T) {
	active := Binding{State: Active, HasRecord: true}
	gone := Binding{State: ServiceMissing, HasRecord: true, Reason: v1alpha1.ReasonServiceNotFound, Message: "Service shop/web does not exist"}
	broken := &armerror.Fault{Class: armerror.Terminal, Code: "Bad", Err: fmt.Errorf("no\nway")}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		st   Binding
		r    updater.Report
		want string
	}{
		{"in sync", active, updater.Report{Outcome: diff.Unchanged, InSync: true}, "True InSync in sync with no nodes"},
		{"failed, and another attempt follows", active, updater.Report{Outcome: diff.Retriable, Fault: broken, WillRetry: true, RetriesUsed: 2, Budget: 3, RetryAt: at},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z"},
		{"what Azure asked for is over", active, updater.Report{Outcome: diff.Retriable, Fault: broken, WillRetry: true, RetriesUsed: 2, Budget: 3, RetryAt: at, NextEligibleAt: at.Add(-time.Hour), At: at.Add(-time.Hour)},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z"},
		{"when Azure asked for patience", active, updater.Report{Outcome: diff.Retriable, Fault: broken, WillRetry: true, RetriesUsed: 2, Budget: 3, RetryAt: at, NextEligibleAt: at},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z, because of Azure's Retry-After"},
		{"the budget is spent", active, updater.Report{Outcome: diff.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3},
			"False Failed the last attempt failed: Bad: no way; Weir retries when the members change"},
		{"the budget is spent, and drift repair is on", active, updater.Report{Outcome: diff.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3, NextCheckAt: at},
			"False Failed the last attempt failed: Bad: no way; Weir retries at 2026-11-21T03:00:00Z or when the members change"},
		{"the budget is spent, and Azure asked for patience", active, updater.Report{Outcome: diff.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3, NextEligibleAt: at},
			"False Failed the last attempt failed: Bad: no way; Weir retries when the members change, but not before 2026-11-21T03:00:00Z, because of Azure's Retry-After"},
		{"admin states alone failed", active, updater.Report{Outcome: diff.Terminal, Fault: broken, Admin: true, AdminRetryAt: at, WillRetry: true},
			"False Retrying the last attempt failed: Bad: no way; Weir retries the admin states at 2026-11-21T03:00:00Z"},
		{"the budget is spent, and admin states are tried on", active, updater.Report{Outcome: diff.Retriable, Fault: broken, AdminRetryAt: at, NextEligibleAt: at},
			"False Retrying the last attempt failed: Bad: no way; Weir retries the admin states at 2026-11-21T03:00:00Z, because of Azure's Retry-After"},
		{"a removal failed", gone, updater.Report{Outcome: diff.Retriable, Fault: broken},
			"False Failed the last attempt to take its addresses out of the pool failed: Bad: no way; another follows within a minute"},
		{"a removal failed, and Azure asked for patience", gone, updater.Report{Outcome: diff.Retriable, Fault: broken, NextEligibleAt: at},
			"False Failed the last attempt to take its addresses out of the pool failed: Bad: no way; another follows after 2026-11-21T03:00:00Z, because of Azure's Retry-After"},
		{"the Service is gone, and so are its addresses", gone, updater.Report{Outcome: diff.Written, InSync: true},
			"False ServiceNotFound Service shop/web does not exist; its addresses were removed from the pool"},
		{"an attempt from before that", gone, updater.Report{Outcome: diff.Written, InSync: true, Written: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
			"False ServiceNotFound Service shop/web does not exist; its addresses are being removed from the pool"},
		{"paused meanwhile", Binding{State: Paused, HasRecord: true}, updater.Report{Outcome: diff.Written, InSync: true}, "Unknown Paused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s v1alpha1.BackendPoolStatus
			setCondition(&s, 1, v1alpha1.ConditionSynced, metav1.ConditionUnknown, v1alpha1.ReasonPaused, "")
			recordAttempt(&s, membership.Set{}, tt.r)
			setAttemptConditions(&s, tt.st, membership.Set{}, tt.r, 1)
			i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })
			got := s.Conditions[i]
			if text := strings.TrimSpace(fmt.Sprintf("%s %s %s", got.Status, got.Reason, got.Message)); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

func TestPacedPoolReportsPacing(t *testing.T) {
	var s v1alpha1.BackendPoolStatus
	until := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	setWaitConditions(&s, 1, updater.Waiting{Cause: updater.CausePace, Until: until}, 7, until.Add(-time.Minute))
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced); c.Reason != v1alpha1.ReasonPace || !strings.HasSuffix(c.Message, "kept to a pace; it is due at 2026-11-21T03:00:00Z") || len(s.Conditions) != 2 || *s.Desired != 7 {
		t.Errorf("%+v", s)
	}
	s.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Retriable", Code: "Conflict"}
	s.RetriesUsed, s.RetryBudget = new(int32(2)), new(int32(3))
	setCondition(&s, 1, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRetrying, "")
	setWaitConditions(&s, 1, updater.Waiting{Cause: updater.CauseGate, Until: until, Message: "reads are closed"}, 7, until.Add(-time.Minute))
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
	if c.Reason != v1alpha1.ReasonRetrying || c.Message != "the last attempt failed: Conflict; retry 2 of 3 waits: reads are closed" {
		t.Errorf("%+v", c)
	}
}

func TestLongListsOfLeftOutNodesAreCut(t *testing.T) {
	set := membership.Set{Addresses: make([]lb.Address, 1)}
	for i := range 17 {
		set.NonMembers = append(set.NonMembers, membership.NonMember{Node: fmt.Sprintf("n%d", i), Reason: "it is gone"})
	}
	if got := InSyncMessage(set); !strings.HasSuffix(got, "node n4: it is gone and 12 more") || strings.Contains(got, "n5") {
		t.Error(got)
	}
}

// LastTransitionTime is when the pool was last in sync, whatever reasons follow.
func TestOutOfSyncSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, p := newRecordedPool(t)
		e, start := c.statuses.GetEntry(RefOf(p)), time.Now()
		for _, step := range []struct {
			status metav1.ConditionStatus
			reason string
			since  time.Duration
		}{
			{metav1.ConditionTrue, v1alpha1.ReasonInSync, 0},
			{metav1.ConditionFalse, v1alpha1.ReasonRetrying, time.Minute},
			{metav1.ConditionFalse, v1alpha1.ReasonFailed, time.Minute},
			{metav1.ConditionTrue, v1alpha1.ReasonInSync, 3 * time.Minute},
		} {
			setCondition(&e.status, 1, v1alpha1.ConditionSynced, step.status, step.reason, "")
			n := 0
			c.statuses.Synced(func(of schedule.Ref, cond metav1.Condition) {
				n++
				if got := cond.LastTransitionTime.Sub(start); of != RefOf(p) || cond.Reason != step.reason || got != step.since {
					t.Errorf("%v is %s since %v, want %s since %v", of, cond.Reason, got, step.reason, step.since)
				}
			})
			if n != 1 {
				t.Errorf("%d pools, want one", n)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A change that waits does not hide that the last attempt failed.
func TestAWaitKeepsTheFailure(t *testing.T) {
	until := time.Unix(2000, 0)
	s := v1alpha1.BackendPoolStatus{LastOutcome: &v1alpha1.AttemptOutcome{Class: "Terminal", Code: "AuthorizationFailed"}}
	setCondition(&s, 1, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonFailed, "the last attempt failed")
	for range 2 {
		setWaitConditions(&s, 1, updater.Waiting{Cause: updater.CausePace, Until: until}, 7, until.Add(-time.Minute))
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		if c.Reason != v1alpha1.ReasonFailed || !strings.HasPrefix(c.Message, "the last attempt failed: AuthorizationFailed; a later change waits, because the pool keeps changing") {
			t.Fatalf("%+v", c)
		}
	}
}
