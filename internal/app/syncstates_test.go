// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/schedule"
)

type synced map[string]metav1.Condition

func (s synced) Synced(yield func(of schedule.Ref, cond metav1.Condition)) {
	for name, cond := range s {
		yield(schedule.Ref{Namespace: "shop", Name: name}, cond)
	}
}

// Paused pools and dry runs do not count as out of sync.
func TestPoolsOutOfSync(t *testing.T) {
	since := time.Unix(1000, 0)
	states := synced{}
	for reason, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ReasonInSync: "True", v1alpha1.ReasonPaused: "Unknown", v1alpha1.ReasonDryRun: "Unknown",
		v1alpha1.ReasonRetrying: "False", v1alpha1.ReasonPending: "Unknown", v1alpha1.ReasonNotAllowed: "False",
	} {
		states[reason] = metav1.Condition{Reason: reason, Status: status, LastTransitionTime: metav1.NewTime(since)}
	}
	got := map[string]bool{}
	for _, p := range listOutOfSync(states)() {
		if p.Namespace != "shop" || p.Name != p.State || !p.Since.Equal(since) {
			t.Errorf("%+v", p)
		}
		got[p.State] = true
	}
	if len(got) != 3 || !got[v1alpha1.ReasonRetrying] || !got[v1alpha1.ReasonPending] || !got[v1alpha1.ReasonNotAllowed] {
		t.Errorf("not in sync: %v", got)
	}
	count := countStates(states)()
	if count[v1alpha1.ReasonInSync] != 1 || count[v1alpha1.ReasonFailed] != 0 || len(count) != len(v1alpha1.SyncedReasons) {
		t.Errorf("by state: %v", count)
	}
}
