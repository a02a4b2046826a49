// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

func until(end time.Time) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) {
		p.Spec.Paused, p.Spec.Pause = true, &v1alpha1.Pause{Until: new(metav1.NewTime(end)), Why: "a move", By: "jane"}
		p.Generation++
	}
}

func (d *desk) works() bool {
	_, err := d.Desired(RefOf(d.p))
	return err == nil
}

// Endpoints and the leader change during a pause of one hour.
func TestAPauseEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := atDesk(t, took)
		d.reconciles()
		d.reports(poolwrite.Written)
		d.said()
		d.becomes(until(time.Now().Add(time.Hour)))
		d.lanes.ops = nil
		if after := d.reconciles(); after != time.Hour {
			t.Errorf("it looks again after %s", after)
		}
		d.says(v1alpha1.ReasonPaused, "paused until 2000-01-01T01:00:00Z; said to be by jane; why: a move: the pool stays")
		if got := d.said(); got != "BackendPool Paused" {
			t.Errorf("told %q", got)
		}

		time.Sleep(20 * time.Minute)
		if err := d.EndpointsChanged(t.Context(), poolschedule.ServiceName{Namespace: "shop", Name: "web"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		d.reconciles()
		if len(d.lanes.ops) != 0 || d.works() {
			t.Errorf("%d operations while it is paused", len(d.lanes.ops))
		}

		d.becomes(func(p *v1alpha1.BackendPool) { d.status().DeepCopyInto(&p.Status) }) // another process takes over
		d.api.stored = d.p
		d.cluster.startsAnew(d.api)
		if after := d.reconciles(); after != 40*time.Minute || len(d.lanes.ops) != 0 {
			t.Errorf("after a restart it looks again after %s, with %d operations", after, len(d.lanes.ops))
		}
		time.Sleep(40*time.Minute - time.Nanosecond)
		if d.works() {
			t.Error("it ends early")
		}

		time.Sleep(time.Nanosecond)
		if after := d.reconciles(); after == 0 || after > statusPatience { // no longer paused: the status is written with the attempt
			t.Errorf("after its end it looks again after %s", after)
		}
		if len(d.lanes.ops) != 1 || d.lanes.ops[0].ChangedAt.IsZero() || !d.works() {
			t.Errorf("at its end: %+v", d.lanes.ops)
		}
		if c := d.condition(v1alpha1.ConditionPaused); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonPauseEnded {
			t.Errorf("%+v", c)
		}
		d.reconciles()
		if got := d.said(); got != "BackendPool Resumed" || len(d.lanes.ops) != 1 {
			t.Errorf("told %q, %d operations", got, len(d.lanes.ops))
		}
	})
}

// Changing the end of a pause takes effect.
func TestAPauseIsProlongedAndCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := atDesk(t, took)
		for _, end := range []time.Duration{time.Hour, 2 * time.Hour, time.Minute} {
			d.becomes(until(time.Now().Add(end)))
			if after := d.reconciles(); after != end || d.works() {
				t.Errorf("paused for %s, it looks again after %s", end, after)
			}
		}
		d.becomes(func(p *v1alpha1.BackendPool) { p.Spec.Pause.Until = nil })
		if after := d.reconciles(); after != 0 {
			t.Errorf("without an end it looks again after %s", after)
		}
		time.Sleep(1000 * time.Hour)
		if d.reconciles(); d.works() {
			t.Error("a pause without an end has ended")
		}
		d.becomes(func(p *v1alpha1.BackendPool) { p.Spec.Paused, p.Spec.Pause = false, nil; p.Generation++ })
		if d.reconciles(); !d.works() || d.said() != "BackendPool Paused, BackendPool Resumed" {
			t.Error("it goes on, and says so")
		}
	})
}

// The clock is set back to before the end of an expired pause: the queued operation is dropped, and the pause
// applies again.
func TestTheClockIsSetBackBehindTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := atDesk(t, took, until(time.Now()))
		d.reconciles()
		if len(d.lanes.ops) != 1 || d.condition(v1alpha1.ConditionPaused).Status != metav1.ConditionFalse {
			t.Fatal("a pause whose end has come is one")
		}
		d.becomes(until(time.Now().Add(time.Minute))) // unchanged
		d.world.queued = nil
		if d.Relevant(d.lanes.ops[0]) || len(d.world.queued) != 1 {
			t.Fatalf("queued %v", d.world.queued)
		}
		if after := d.reconciles(); after != time.Minute {
			t.Errorf("it looks again after %s", after)
		}
		time.Sleep(time.Minute)
		if d.reconciles(); len(d.lanes.ops) != 2 {
			t.Errorf("%d operations", len(d.lanes.ops))
		}
	})
}
