// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// A failed removal remains visible until the next attempt, with one event.
func TestAFailedRemovalIsOneProblem(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(diff.Written, withManagedAddress)
	d.deleteService()
	d.reconcileNow()
	d.assertSynced(v1alpha1.ReasonServiceNotFound, "its addresses are being removed")
	written := 0
	for i := range 3 {
		d.reportAttempt(diff.Terminal, func(r *updater.Report) { r.Fault.RequestID = fmt.Sprint("r", i) })
		d.assertSynced(v1alpha1.ReasonFailed, "the last attempt to take its addresses out of the pool failed: Bad: no way (request id r0); another")
		if got := len(d.api.writes); i > 0 && got != written {
			t.Errorf("that another request failed was written: %d times, then %d", written, got)
		}
		written = len(d.api.writes)
		d.statuses.GetEntry(RefOf(d.p)).scheduleCheck(time.Unix(1, 0)) // it is due
		d.reconcileNow()
		d.assertSynced(v1alpha1.ReasonFailed, "out of the pool")
	}
	if got := d.takeReasons(); got != "BackendPool ServiceNotFound, BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	d.reportAttempt(diff.Written)
	d.assertSynced(v1alpha1.ReasonServiceNotFound, "its addresses were removed")
}

// A lost write that may still land keeps its addresses on record and shows in the status. A deleted
// BackendPool is not released before.
func TestALostWriteThatMayLandIsInTheStatus(t *testing.T) {
	d := newFixture(t)
	mayLand := func(r *updater.Report) { r.HasPendingWrite = true }
	d.reportAttempt(diff.Unchanged, withManagedAddress, mayLand)
	d.assertSynced(v1alpha1.ReasonInSync, "a write whose response was lost may still be applied")
	d.reportAttempt(diff.Unchanged, withManagedAddress)
	if s := d.poolStatus(); strings.Contains(s.Conditions[0].Message, "may land") {
		t.Errorf("%+v", s.Conditions)
	}
	d.deleteService()
	d.reconcileNow()
	d.reportAttempt(diff.Unchanged, withManagedAddress, mayLand)
	d.assertSynced(v1alpha1.ReasonServiceNotFound, "may still be applied")
}

// The status contains the findings of an attempt and nothing else.
func TestStatusAfterAReport(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(diff.Unchanged, withManagedAddress)
	s := d.poolStatus()
	if !strings.HasSuffix(s.PoolID, "/loadBalancers/lb/backendAddressPools/web") || len(s.WrittenAddresses) != 1 || s.LastWrite != nil {
		t.Errorf("a pool that was in sync: %+v", s)
	}
	d.reportAttempt(diff.Rejected, func(r *updater.Report) { r.Observed = 7 })
	if s = d.poolStatus(); *s.Observed != 1 || *s.Desired != 1 {
		t.Errorf("the entries of network interfaces were counted: %d of %d", *s.Observed, *s.Desired)
	}
	since := func(outcome diff.Outcome, code string, at int64) int64 {
		d.reportAttempt(outcome, func(r *updater.Report) { r.At, r.Fault.Code = time.Unix(at, 0), code })
		return d.poolStatus().LastOutcome.Since.Unix()
	}
	for _, tt := range []struct {
		outcome  diff.Outcome
		code     string
		at, want int64
	}{
		{diff.Terminal, "Bad", 2000, 2000}, {diff.Terminal, "Bad", 3000, 2000},
		{diff.Terminal, "Worse", 4000, 4000}, {diff.Retriable, "Worse", 5000, 5000},
	} {
		if got := since(tt.outcome, tt.code, tt.at); got != tt.want {
			t.Errorf("%s %s is so since %d, want %d", tt.outcome, tt.code, got, tt.want)
		}
	}
}

// A problem that remains after a pause gets a new event.
func TestProblemAfterPauseIsReportedAgain(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(diff.Terminal)
	d.reportAttempt(diff.Terminal)
	if got := d.takeReasons(); got != "BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	d.updatePool(asPaused)
	d.reconcileNow()
	d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Paused = false })
	d.reconcileNow()
	d.reportAttempt(diff.Terminal)
	if got := d.takeReasons(); got != "BackendPool Paused, BackendPool Resumed, BackendPool Failed" {
		t.Errorf("events after the pause: %s", got)
	}
}

func TestNoServiceLeftToReportTo(t *testing.T) {
	d := newFixture(t)
	d.deleteService()
	names := []schedule.ServiceName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "other"}}
	d.reportAttempt(diff.Retriable, func(r *updater.Report) { r.Retrying, r.Failed, r.Updated = names, names, names })
	if got := d.takeReasons(); strings.Contains(got, "Service ") {
		t.Errorf("events: %s", got)
	}
}

// Deleting a Service drops its operations at once.
func TestAServiceThatGoesHasNoOperations(t *testing.T) {
	d := newFixture(t)
	reconciles := func() {
		t.Helper()
		if err := d.EndpointsChanged(t.Context(), schedule.ServiceName{Namespace: "shop", Name: "web"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	reconciles()
	if len(d.workers.removed) != 0 || len(d.workers.ops) != 1 {
		t.Fatalf("%v removed, %d operations", d.workers.removed, len(d.workers.ops))
	}
	leaving := serviceOfType(corev1.ServiceTypeLoadBalancer)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/keeper"}
	d.world.addObjects(leaving)
	reconciles()
	d.deleteService()
	reconciles()
	if len(d.workers.removed) != 2 || len(d.workers.ops) != 1 {
		t.Errorf("%v removed, %d operations; want it dropped while it goes, and when it is gone", d.workers.removed, len(d.workers.ops))
	}
}

// A recovery gets one event on the BackendPool, after an event for the problem, also from the next process.
func TestRecoveryIsReportedOnce(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		d := newFixture(t)
		d.reportAttempt(diff.Written, withManagedAddress)
		d.reportAttempt(diff.Terminal)
		d.reportAttempt(diff.Retriable, withRequeue)
		if got := d.takeReasons(); got != "BackendPool Failed" {
			t.Errorf("events: %s", got)
		}
		if restarted {
			d.p.Status = *d.poolStatus()
			d.statuses.forgetEntry(RefOf(d.p))
			d.statuses.AdoptPool(d.p)
		}
		for range 2 {
			d.reportAttempt(diff.Written, withManagedAddress)
		}
		if got := d.takeReasons(); got != "BackendPool LoadBalancerBackendPoolUpdated" {
			t.Errorf("restarted %t: events after it is in sync: %s", restarted, got)
		}
		d.reportAttempt(diff.Terminal)
		if got := d.takeReasons(); got != "BackendPool Failed" {
			t.Errorf("restarted %t: events of the next failure: %s", restarted, got)
		}
	}
}
