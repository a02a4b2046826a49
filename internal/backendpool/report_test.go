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
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// A failed removal remains visible until the next attempt, with one event.
func TestAFailedRemovalIsOneProblem(t *testing.T) {
	d := atDesk(t)
	d.reports(poolwrite.Written, addressesOfOurs)
	d.serviceGoes()
	d.reconciles()
	d.says(v1alpha1.ReasonServiceNotFound, "its addresses are being removed")
	written := 0
	for i := range 3 {
		d.reports(poolwrite.Terminal, func(r *poolupdate.Report) { r.Fault.RequestID = fmt.Sprint("r", i) })
		d.says(v1alpha1.ReasonFailed, "the last attempt to take its addresses out of the pool failed: Bad: no way (request id r0); another")
		if is := len(d.api.writes); i > 0 && is != written {
			t.Errorf("that another request failed was written: %d times, then %d", written, is)
		}
		written = len(d.api.writes)
		d.statuses.Known(RefOf(d.p)).again(time.Unix(1, 0)) // it is due
		d.reconciles()
		d.says(v1alpha1.ReasonFailed, "out of the pool")
	}
	if got := d.said(); got != "BackendPool ServiceNotFound, BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	d.reports(poolwrite.Written)
	d.says(v1alpha1.ReasonServiceNotFound, "its addresses were removed")
}

// A lost write that may still land keeps its addresses on record and shows in the status. A deleted
// BackendPool is not released before.
func TestALostWriteThatMayLandIsInTheStatus(t *testing.T) {
	d := atDesk(t)
	mayLand := func(r *poolupdate.Report) { r.MayLand = true }
	d.reports(poolwrite.Unchanged, addressesOfOurs, mayLand)
	d.says(v1alpha1.ReasonLevel, "a write whose answer was lost may land yet")
	d.reports(poolwrite.Unchanged, addressesOfOurs)
	if s := d.status(); strings.Contains(s.Conditions[0].Message, "may land") {
		t.Errorf("%+v", s.Conditions)
	}
	d.serviceGoes()
	d.reconciles()
	d.reports(poolwrite.Unchanged, addressesOfOurs, mayLand)
	d.says(v1alpha1.ReasonServiceNotFound, "may land yet")
}

// The status contains the findings of an attempt and nothing else.
func TestWhatAReportLeavesInTheStatus(t *testing.T) {
	d := atDesk(t)
	d.reports(poolwrite.Unchanged, addressesOfOurs)
	s := d.status()
	if !strings.HasSuffix(s.PoolID, "/loadBalancers/lb/backendAddressPools/web") || len(s.WrittenAddresses) != 1 || s.LastWrite != nil {
		t.Errorf("a pool that was level: %+v", s)
	}
	d.reports(poolwrite.Refused, func(r *poolupdate.Report) { r.Observed = 7 })
	if s = d.status(); *s.Observed != 1 || *s.Desired != 1 {
		t.Errorf("the entries of network interfaces were counted: %d of %d", *s.Observed, *s.Desired)
	}
	since := func(outcome poolwrite.Outcome, code string, at int64) int64 {
		d.reports(outcome, func(r *poolupdate.Report) { r.At, r.Fault.Code = time.Unix(at, 0), code })
		return d.status().LastOutcome.Since.Unix()
	}
	for _, tt := range []struct {
		outcome  poolwrite.Outcome
		code     string
		at, want int64
	}{
		{poolwrite.Terminal, "Bad", 2000, 2000}, {poolwrite.Terminal, "Bad", 3000, 2000},
		{poolwrite.Terminal, "Worse", 4000, 4000}, {poolwrite.Retriable, "Worse", 5000, 5000},
	} {
		if got := since(tt.outcome, tt.code, tt.at); got != tt.want {
			t.Errorf("%s %s is so since %d, want %d", tt.outcome, tt.code, got, tt.want)
		}
	}
}

// A problem that remains after a pause gets a new event.
func TestAProblemAfterAPauseIsToldAgain(t *testing.T) {
	d := atDesk(t)
	d.reports(poolwrite.Terminal)
	d.reports(poolwrite.Terminal)
	if got := d.said(); got != "BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	d.becomes(paused)
	d.reconciles()
	d.becomes(func(p *v1alpha1.BackendPool) { p.Spec.Paused = false })
	d.reconciles()
	d.reports(poolwrite.Terminal)
	if got := d.said(); got != "BackendPool Paused, BackendPool Resumed, BackendPool Failed" {
		t.Errorf("events after the pause: %s", got)
	}
}

func TestNobodyIsLeftToBeTold(t *testing.T) {
	d := atDesk(t)
	d.serviceGoes()
	names := []poolschedule.ServiceName{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "other"}}
	d.reports(poolwrite.Retriable, func(r *poolupdate.Report) { r.Retrying, r.Failed, r.Updated = names, names, names })
	if got := d.said(); strings.Contains(got, "Service ") {
		t.Errorf("events: %s", got)
	}
}

// Deleting a Service drops its operations at once.
func TestAServiceThatGoesHasNoOperations(t *testing.T) {
	d := atDesk(t)
	reconciles := func() {
		t.Helper()
		if err := d.EndpointsChanged(t.Context(), poolschedule.ServiceName{Namespace: "shop", Name: "web"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	reconciles()
	if len(d.lanes.removed) != 0 || len(d.lanes.ops) != 1 {
		t.Fatalf("%v removed, %d operations", d.lanes.removed, len(d.lanes.ops))
	}
	leaving := serviceOfType(corev1.ServiceTypeLoadBalancer)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/keeper"}
	d.world.add(leaving)
	reconciles()
	d.serviceGoes()
	reconciles()
	if len(d.lanes.removed) != 2 || len(d.lanes.ops) != 1 {
		t.Errorf("%v removed, %d operations; want it dropped while it goes, and when it is gone", d.lanes.removed, len(d.lanes.ops))
	}
}

// A recovery gets one event on the BackendPool, after an event for the problem, also from the next process.
func TestARecoveryIsToldOnce(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		d := atDesk(t)
		d.reports(poolwrite.Written, addressesOfOurs)
		d.reports(poolwrite.Terminal)
		d.reports(poolwrite.Retriable, requeued)
		if got := d.said(); got != "BackendPool Failed" {
			t.Errorf("events: %s", got)
		}
		if restarted {
			e := d.statuses.Known(RefOf(d.p))
			e.lastProblem = newEntry(e.ref, &v1alpha1.BackendPool{Status: e.status}).lastProblem
		}
		for range 2 {
			d.reports(poolwrite.Written, addressesOfOurs)
		}
		if got := d.said(); got != "BackendPool LoadBalancerBackendPoolUpdated" {
			t.Errorf("restarted %t: events after it is level: %s", restarted, got)
		}
		d.reports(poolwrite.Terminal)
		if got := d.said(); got != "BackendPool Failed" {
			t.Errorf("restarted %t: events of the next failure: %s", restarted, got)
		}
	}
}
