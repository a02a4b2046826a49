// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// A Retry-After outlives the attempts, with the reason that nothing waits.
func TestRetryAfterOutlivesTheAttempt(t *testing.T) {
	for name, then := range map[string]func(d *fixture){
		"the Service goes before the first write": func(d *fixture) { d.deleteService() },
		"a pause":                             func(d *fixture) { d.updatePool(asPaused) },
		"nobody can tell which pool is meant": func(d *fixture) { d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" }) },
		"the change is given up": func(d *fixture) {
			d.reportAttempt(diff.Retriable, func(r *updater.Report) { r.NextEligibleAt = d.poolStatus().NextEligibleAt.Time })
			d.assertSynced(v1alpha1.ReasonFailed, "Weir retries when the members change, but not before ")
		},
		"an attempt from before a pause": func(d *fixture) {
			d.updatePool(asPaused)
			d.reportAttempt(diff.Retriable, func(r *updater.Report) { r.WillRetry, r.NextEligibleAt = true, d.poolStatus().NextEligibleAt.Time })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.reconcileNow()
				d.reportWait()
				d.assertParked(true)
				until := d.poolStatus().NextEligibleAt.Time
				then(d)
				wait := d.reconcileNow()
				d.assertParked(true)
				c := d.findCondition(v1alpha1.ConditionParked)
				if !d.poolStatus().NextEligibleAt.Time.Equal(until) || c.Reason != v1alpha1.ReasonNothingWaits || c.Message != retryAfterMessage(until)+"; no attempt waits for that time" {
					t.Errorf("until %s, want %s: %s %q", d.poolStatus().NextEligibleAt, until, c.Reason, c.Message)
				}
				if wait != time.Until(until) {
					t.Errorf("the next look is in %s, and the time is over in %s", wait, time.Until(until))
				}
				time.Sleep(wait)
				if requeueAfter := d.reconcileNow(); requeueAfter != 0 {
					t.Errorf("another look in %s", requeueAfter)
				}
				d.assertParked(false)
			})
		})
	}
}

// A Retry-After remains during other waits and after a restart.
func TestRetryAfterIsReportedWithOtherWaits(t *testing.T) {
	until := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, cause := range []updater.Cause{updater.CauseLease, updater.CausePace, updater.CauseBehind} {
		for _, tt := range []struct {
			parked string
			now    time.Time
			want   string
		}{
			{v1alpha1.ReasonRetryAfter, until.Add(-time.Second), v1alpha1.ReasonRetryAfter},
			{v1alpha1.ReasonGateClosed, until.Add(-time.Second), v1alpha1.ReasonGateClosed},
			{v1alpha1.ReasonNothingWaits, until.Add(-time.Second), v1alpha1.ReasonRetryAfter},
			{v1alpha1.ReasonRetryAfter, until, v1alpha1.ReasonNotParked},
		} {
			var s v1alpha1.BackendPoolStatus
			setParked(&s, 1, until, tt.parked, retryAfterMessage(until))
			setWaitConditions(&s, 1, updater.Waiting{Cause: cause, Until: until.Add(time.Hour)}, 1, tt.now)
			if got := parkedReason(&s); got != tt.want || s.NextEligibleAt != nil && !s.NextEligibleAt.Time.Equal(until) {
				t.Errorf("%s, waits for %s: %s until %s, want %s", tt.parked, cause, got, s.NextEligibleAt, tt.want)
			}
		}
	}
}

// A new process adopts the persisted Retry-After up to the maximum, and persists the limit.
func TestPersistedRetryAfterIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ requested, believed time.Duration }{
			{time.Hour, time.Hour}, {24 * time.Hour, 24 * time.Hour}, {24*time.Hour + time.Second, 24 * time.Hour}, {1e5 * time.Hour, 24 * time.Hour}, {-time.Hour, -time.Hour},
		} {
			c, api, p := newRecordedPool(t)
			p = p.DeepCopy()
			p.Status.NextEligibleAt = new(metav1.NewTime(time.Now().Add(tt.requested)))
			api.stored = p
			lanes := &queued{}
			c.Workers = lanes
			c.restartProcess(api)
			if _, err := c.reconcilePool(t, p); err != nil {
				t.Fatal(err)
			}
			if len(lanes.ops) != 1 || time.Until(lanes.ops[0].NotBefore) != tt.believed {
				t.Errorf("asked for %s: %d operations, not before %s", tt.requested, len(lanes.ops), time.Until(lanes.ops[0].NotBefore))
			}
			at := c.statuses.GetEntry(RefOf(p)).status.NextEligibleAt
			if tt.believed > 0 && (at == nil || time.Until(at.Time) != tt.believed) || tt.believed < 0 && at != nil {
				t.Errorf("asked for %s: the status says %s", tt.requested, at)
			}
		}
	})
}

// What ends a wait.
func TestAttemptClearsParkedState(t *testing.T) {
	t.Run("an attempt begins", func(t *testing.T) {
		d := newFixture(t)
		d.reportWait()
		if err := d.Record(t.Context(), RefOf(d.p), diff.Intent{Written: ours, Add: 1}); err != nil {
			t.Fatal(err)
		}
		d.assertParked(false)
		d.assertSynced(v1alpha1.ReasonUpdating, "adding 1")
	})
	t.Run("an attempt failed, and another follows", func(t *testing.T) {
		d := newFixture(t)
		d.reportWait()
		d.reportAttempt(diff.Retriable, withRequeue)
		d.assertParked(false)
		d.reportAttempt(diff.Retriable, withRequeue, func(r *updater.Report) { r.NextEligibleAt = r.At.Add(time.Minute) })
		d.assertParked(true)
		d.reportAttempt(diff.Retriable, withRequeue, func(r *updater.Report) { r.NextEligibleAt = r.At })
		d.assertParked(false)
	})
	t.Run("something of our own is not ready", func(t *testing.T) {
		d := newFixture(t)
		d.reportWait()
		d.reportAttempt(diff.Postponed)
		d.assertParked(false)
	})
}

// The effect of a wait on the status depends on the current entitlement.
func TestWaitIsReportedForWaitingPools(t *testing.T) {
	t.Run("paused meanwhile", func(t *testing.T) {
		d := newFixture(t)
		d.updatePool(asPaused)
		d.reconcileNow()
		d.reportWait()
		d.assertParked(false) // not parked, and nothing waits now
		d.assertSynced(v1alpha1.ReasonPaused, "")
		d.reportAttempt(diff.Postponed)
		d.assertSynced(v1alpha1.ReasonPaused, "")
	})
	t.Run("another pool by now", func(t *testing.T) {
		d := newFixture(t)
		d.reportWait(func(w *updater.Waiting) { w.Pool = lb.PoolID{LoadBalancer: w.Pool.LoadBalancer, Name: "before"} })
		d.assertParked(false)
		d.reportWait(func(w *updater.Waiting) { w.Pool.Name = strings.ToUpper(w.Pool.Name) }) // Azure IDs are case-insensitive
		d.assertParked(true)
	})
	t.Run("another BackendPool of the name", func(t *testing.T) {
		d := newFixture(t)
		d.reportWait(func(w *updater.Waiting) { w.Ref.UID = "before" })
		d.assertParked(false)
	})
	t.Run("a removal wants nobody", func(t *testing.T) {
		d := newFixture(t)
		d.world.nodes["n1"] = nodeIP("n1")
		d.updatePool(took, func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{} })
		d.poolStatus().PoolID = d.p.Status.PoolID
		d.reportWait()
		if got := *d.poolStatus().Desired; got != 1 {
			t.Errorf("desired %d, want the node", got)
		}
		d.updatePool(deleting)
		d.reportWait()
		if got := *d.poolStatus().Desired; got != 0 {
			t.Errorf("desired %d by a BackendPool that goes", got)
		}
	})
	t.Run("a retry of which nothing is known", func(t *testing.T) {
		d := newFixture(t)
		setCondition(d.poolStatus(), 1, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRetrying, "")
		d.reportWait()
		d.assertSynced(v1alpha1.ReasonUpdating, "a change waits: writes are closed")
	})
}

// A pending check keeps the status and only sets the Retry-After.
func TestALookThatWaitsTakesNothingBack(t *testing.T) {
	d := newFixture(t, took)
	d.reconcileNow()
	d.reportAttempt(diff.Stale)
	d.reportWait(func(w *updater.Waiting) { w.Since, w.CheckOnly = time.Now(), true })
	d.assertSynced(v1alpha1.ReasonPoolNotFound, "has no backend pool")
	d.assertParked(true)
	d.reportWait(func(w *updater.Waiting) { w.Since = time.Now() })
	d.assertSynced(v1alpha1.ReasonUpdating, "a change waits")
}

// A wait older than the last attempt is ignored.
func TestAWaitFromBeforeTheLastAttemptIsOld(t *testing.T) {
	d := newFixture(t, took)
	d.reconcileNow()
	seen := time.Now()
	d.reportAttempt(diff.Written, func(r *updater.Report) { r.At = seen.Add(time.Second) })
	d.reportWait(func(w *updater.Waiting) { w.Since = seen })
	d.assertSynced(v1alpha1.ReasonInSync, "")
}

// The end of a pause is a change, even if an attempt was running when it began.
func TestTheEndOfAPauseIsAChange(t *testing.T) {
	d := newFixture(t, took)
	d.reconcileNow()
	d.reportAttempt(diff.Written)
	d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Paused = true; p.Generation++ })
	d.reconcileNow()
	if _, err := d.DesiredPool(RefOf(d.p)); err == nil {
		t.Error("the attempt goes on")
	}
	d.workers.ops = nil
	d.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Paused = false; p.Generation++ })
	d.reconcileNow()
	if len(d.workers.ops) != 1 || d.workers.ops[0].ChangedAt.IsZero() {
		t.Errorf("%+v", d.workers.ops)
	}
}

// After a restart, or for a missing pool, a check is no change.
func TestALookIsNoChange(t *testing.T) {
	d := newFixture(t, took)
	d.poolStatus().PoolID = d.p.Status.PoolID // as read at the start
	d.reconcileNow()
	if len(d.workers.ops) != 1 || !d.workers.ops[0].ChangedAt.IsZero() {
		t.Errorf("after a start: %+v", d.workers.ops)
	}
	d = newFixture(t) // never taken
	d.reconcileNow()
	if len(d.workers.ops) != 1 || d.workers.ops[0].ChangedAt.IsZero() {
		t.Errorf("a new pool: %+v", d.workers.ops)
	}
}
