// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

func pausedUntil(end time.Time) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) {
		p.Spec.Paused, p.Spec.Pause = true, &v1alpha1.Pause{Until: new(metav1.NewTime(end)), Why: "a move", By: "jane"}
		p.Generation++
	}
}

func (fx *fixture) mayUpdate() bool {
	_, err := fx.DesiredPool(RefOf(fx.p))
	return err == nil
}

// Endpoints and the leader change during a pause of one hour.
func TestAPauseEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, took)
		d.reconcileNow()
		d.reportAttempt(diff.Written)
		d.takeReasons()
		d.updatePool(pausedUntil(time.Now().Add(time.Hour)))
		d.workers.ops = nil
		if after := d.reconcileNow(); after != time.Hour {
			t.Errorf("it looks again after %s", after)
		}
		d.assertSynced(v1alpha1.ReasonPaused, "paused until 2000-01-01T01:00:00Z; reported by jane; why: a move: the pool remains unchanged")
		if got := d.takeReasons(); got != "BackendPool Paused" {
			t.Errorf("told %q", got)
		}

		time.Sleep(20 * time.Minute)
		if err := d.EndpointsChanged(t.Context(), schedule.ServiceName{Namespace: "shop", Name: "web"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		d.reconcileNow()
		if len(d.workers.ops) != 0 || d.mayUpdate() {
			t.Errorf("%d operations while it is paused", len(d.workers.ops))
		}

		d.updatePool(func(p *v1alpha1.BackendPool) { d.poolStatus().DeepCopyInto(&p.Status) }) // another process takes over
		d.api.stored = d.p
		d.cluster.restartProcess(d.api)
		if after := d.reconcileNow(); after != 40*time.Minute || len(d.workers.ops) != 0 {
			t.Errorf("after a restart it looks again after %s, with %d operations", after, len(d.workers.ops))
		}
		time.Sleep(40*time.Minute - time.Nanosecond)
		if d.mayUpdate() {
			t.Error("it ends early")
		}

		time.Sleep(time.Nanosecond)
		if after := d.reconcileNow(); after == 0 || after > maxStatusDelay { // no longer paused: the status is written with the attempt
			t.Errorf("after its end it looks again after %s", after)
		}
		if len(d.workers.ops) != 1 || d.workers.ops[0].ChangedAt.IsZero() || !d.mayUpdate() {
			t.Errorf("at its end: %+v", d.workers.ops)
		}
		if c := d.findCondition(v1alpha1.ConditionPaused); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonPauseEnded {
			t.Errorf("%+v", c)
		}
		d.reconcileNow()
		if got := d.takeReasons(); got != "BackendPool Resumed" || len(d.workers.ops) != 1 {
			t.Errorf("told %q, %d operations", got, len(d.workers.ops))
		}
	})
}

// Changing the end of a pause takes effect.
func TestAPauseIsProlongedAndCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, took)
		for _, end := range []time.Duration{time.Hour, 2 * time.Hour, time.Minute} {
			d.updatePool(pausedUntil(time.Now().Add(end)))
			if after := d.reconcileNow(); after != end || d.mayUpdate() {
				t.Errorf("paused for %s, it looks again after %s", end, after)
			}
		}
		d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Pause.Until = nil })
		if after := d.reconcileNow(); after != 0 {
			t.Errorf("without an end it looks again after %s", after)
		}
		time.Sleep(1000 * time.Hour)
		if d.reconcileNow(); d.mayUpdate() {
			t.Error("a pause without an end has ended")
		}
		d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Paused, p.Spec.Pause = false, nil; p.Generation++ })
		if d.reconcileNow(); !d.mayUpdate() || d.takeReasons() != "BackendPool Paused, BackendPool Resumed" {
			t.Error("it goes on, and says so")
		}
	})
}

// The clock is set back to before the end of an expired pause: the queued operation is dropped, and the pause
// applies again.
func TestTheClockIsSetBackBehindTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, took, pausedUntil(time.Now()))
		d.reconcileNow()
		if len(d.workers.ops) != 1 || d.findCondition(v1alpha1.ConditionPaused).Status != metav1.ConditionFalse {
			t.Fatal("a pause whose end has come is one")
		}
		d.updatePool(pausedUntil(time.Now().Add(time.Minute))) // unchanged
		d.world.queued = nil
		if d.IsNeeded(d.workers.ops[0]) || len(d.world.queued) != 1 {
			t.Fatalf("queued %v", d.world.queued)
		}
		if after := d.reconcileNow(); after != time.Minute {
			t.Errorf("it looks again after %s", after)
		}
		time.Sleep(time.Minute)
		if d.reconcileNow(); len(d.workers.ops) != 2 {
			t.Errorf("%d operations", len(d.workers.ops))
		}
	})
}
