// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

func (c *cluster) desiredOf(t *testing.T, ref schedule.Ref) diff.Desired {
	t.Helper()
	d, err := c.DesiredPool(ref)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (c *cluster) currentInput(t *testing.T, p *v1alpha1.BackendPool) operationInput {
	t.Helper()
	set, err := c.Cluster.Members(p)
	if err != nil {
		t.Fatal(err)
	}
	return newOperationInput(p, c.ResolveBinding(p, time.Now()), set)
}

// A node is missing during an attempt and returns before the next reconciliation: the situation equals that of
// the first operation, and still another operation is needed.
func TestChangeDuringAnAttempt(t *testing.T) {
	p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
	})
	c, e := newLoadedPool(t, p, nil, "n1", "n2")
	if !e.needsOperation(c.currentInput(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	if e.needsOperation(c.currentInput(t, p), time.Now()) {
		t.Error("the same situation queues twice")
	}
	delete(c.world.nodes, "n2")
	if got := len(c.desiredOf(t, e.ref).Addresses); got != 1 {
		t.Fatalf("the attempt wants %d addresses", got)
	}
	c.world.nodes["n2"] = nodeIP("n2")
	if !e.needsOperation(c.currentInput(t, p), time.Now()) {
		t.Error("n2 is back, the attempt left it out, and nothing follows")
	}
}

// The same for a Service that is deleted, recreated and deleted.
func TestServiceThatGoesTwiceIsDrainedTwice(t *testing.T) {
	p := bp("a", 0, took)
	c, e := newLoadedPool(t, p, nil)
	if !e.needsOperation(c.currentInput(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	svc := serviceOfType(corev1.ServiceTypeLoadBalancer)
	c.world.addObjects(svc)
	c.desiredOf(t, e.ref) // an attempt for the Service
	c.world.deleteService(svc)
	if !e.needsOperation(c.currentInput(t, p), time.Now()) {
		t.Error("the Service is gone again, and nothing removes what the attempt wrote")
	}
}

func TestResyncTimes(t *testing.T) {
	opts := Config{RecheckInterval: 5 * time.Minute, ReleaseRetryInterval: time.Minute}
	filling := Binding{State: Active}
	draining := Binding{State: ServiceMissing, HasRecord: true}
	leaving := Binding{State: Active, HasRecord: true, Deleting: true}
	ended := func(o diff.Outcome) updater.Report {
		return updater.Report{Outcome: o, At: time.Unix(0, 0)}
	}
	inSync := updater.Report{Outcome: diff.Written, InSync: true, At: time.Unix(0, 0)}
	missing := func(code string) updater.Report {
		return updater.Report{Outcome: diff.Stale, At: time.Unix(0, 0), Fault: &armerror.Fault{Class: armerror.Stale, Code: code}}
	}
	nameless, named := missing(armerror.CodeNotFound), missing("ResourceNotFound")
	tests := []struct {
		name     string
		standing Binding
		attempts []updater.Report
		after    time.Duration // 0 for never
		released bool
	}{
		{"in sync", filling, []updater.Report{inSync}, 0, false},
		{"failed", filling, []updater.Report{ended(diff.Terminal)}, 0, false},
		{"no pool", filling, []updater.Report{ended(diff.Stale)}, 5 * time.Minute, false},
		{"interfaces", filling, []updater.Report{ended(diff.Rejected)}, 5 * time.Minute, false},
		{"no pool, then Azure fails", filling, []updater.Report{ended(diff.Stale), ended(diff.Terminal), ended(diff.Terminal)}, 5 * time.Minute, false},
		{"no pool, then in sync, then failed", filling, []updater.Report{ended(diff.Stale), inSync, ended(diff.Terminal)}, 0, false},
		{"drained", draining, []updater.Report{inSync}, 0, false},
		{"draining fails", draining, []updater.Report{ended(diff.Terminal)}, time.Minute, false},
		{"draining finds no pool", draining, []updater.Report{ended(diff.Stale)}, 5 * time.Minute, false},
		{"leaving", leaving, []updater.Report{inSync}, 0, true},
		{"leaving fails", leaving, []updater.Report{ended(diff.Terminal)}, time.Minute, false},
		{"leaving a pool that is gone", leaving, []updater.Report{ended(diff.Stale)}, 0, true},
		{"leaving a pool that Azure names as gone", leaving, []updater.Report{named}, 0, true},
		{"leaving, and a 404 names nothing", leaving, []updater.Report{nameless}, time.Minute, false},
		{"leaving, and two in a row do", leaving, []updater.Report{nameless, nameless}, 0, true},
		{"leaving, and two do that are not in a row", leaving, []updater.Report{nameless, ended(diff.Terminal), nameless}, time.Minute, false},
		{"filling, and a 404 names nothing", filling, []updater.Report{nameless}, 5 * time.Minute, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Entry{}
			for _, r := range tt.attempts {
				e.nextCheckAt = time.Time{} // due
				e.scheduleAfterAttempt(tt.standing, r, opts)
			}
			var after time.Duration
			if !e.nextCheckAt.IsZero() {
				after = e.nextCheckAt.Sub(time.Unix(0, 0))
			}
			if after != tt.after || e.isReleased != tt.released {
				t.Errorf("again after %s, released %v; want %s, %v", after, e.isReleased, tt.after, tt.released)
			}
		})
	}
}

// A pool that was read before keeps that while it is queued again; a deleted one never reports in sync.
func TestReportsOfQueuedPool(t *testing.T) {
	for _, tt := range []struct {
		name     string
		before   func(*v1alpha1.BackendPool)
		reason   string
		wantText string
	}{
		{"new", func(*v1alpha1.BackendPool) {}, v1alpha1.ReasonPending, "nothing has been read"},
		{"read before a pause", func(p *v1alpha1.BackendPool) { took(p); p.Status.LastOutcome = &v1alpha1.AttemptOutcome{} }, v1alpha1.ReasonUpdating, "read again"},
		{"being deleted", func(p *v1alpha1.BackendPool) { took(p); deleting(p) }, v1alpha1.ReasonUpdating, "being deleted; its addresses are being removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, api, p := newRecordedPool(t)
			lanes := &queued{}
			c.Workers = lanes
			tt.before(p)
			c.restartProcess(api)
			if _, err := c.reconcilePool(t, p); err != nil {
				t.Fatal(err)
			}
			got := meta.FindStatusCondition(c.statuses.GetEntry(RefOf(p)).status.Conditions, v1alpha1.ConditionSynced)
			if len(lanes.ops) != 1 || got == nil || got.Reason != tt.reason || !strings.Contains(got.Message, tt.wantText) {
				t.Errorf("%d operations, %+v; want one, %s and %q", len(lanes.ops), got, tt.reason, tt.wantText)
			}
		})
	}
}

// The attempt that set an interface Down ends after the BackendPool was deleted. Release must wait for an
// attempt that reverts it.
func TestAnAttemptThatTookNothingBackReleasesNothing(t *testing.T) {
	st := Binding{State: Active, Deleting: true, HasRecord: true}
	for wanted, released := range map[int]bool{1: false, 0: true} {
		e := &Entry{}
		e.scheduleAfterAttempt(st, updater.Report{Outcome: diff.Rejected, StatesInSync: true, Desired: wanted}, Config{})
		if e.IsReleased() != released {
			t.Errorf("%d members wanted: released %v", wanted, !released)
		}
	}
}

// A retry request is handled once; a new process tries everything.
func TestRequestedRetry(t *testing.T) {
	d := newFixture(t)
	asks := func(at string) {
		d.updatePool(func(p *v1alpha1.BackendPool) { p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: at} })
	}
	asks("before")
	for _, step := range []struct {
		asks          string
		retried, adds int
	}{{"", 0, 1}, {"12:00", 1, 2}, {"", 1, 2}, {"12:01", 2, 3}} {
		if step.asks != "" {
			asks(step.asks)
		}
		if d.reconcileNow(); d.workers.retried != step.retried || len(d.workers.ops) != step.adds {
			t.Errorf("asked %q: %d retries, %d operations; want %d, %d", step.asks, d.workers.retried, len(d.workers.ops), step.retried, step.adds)
		}
	}
	if op := d.workers.ops[1]; op.ChangedAt.IsZero() {
		t.Error("nobody is said to wait for it")
	}
}

// A retry request reads a pool that is in sync: it may have been changed in Azure.
func TestRequestedPoolInSyncIsRead(t *testing.T) {
	d := newFixture(t)
	d.reconcileNow()
	d.reportAttempt(diff.Written)
	d.assertSynced(v1alpha1.ReasonInSync, "in sync")
	d.workers.inSync = true
	if d.reconcileNow(); len(d.workers.ops) != 1 {
		t.Errorf("%d operations of a pool in sync without a request, want only the first", len(d.workers.ops))
	}
	d.updatePool(func(p *v1alpha1.BackendPool) { p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: "12:00"} })
	if d.reconcileNow(); len(d.workers.ops) != 2 {
		t.Errorf("%d operations, want another one", len(d.workers.ops))
	}
	d.assertSynced(v1alpha1.ReasonUpdating, "read again")
	d.reportAttempt(diff.Unchanged)
	if d.assertSynced(v1alpha1.ReasonInSync, "in sync"); d.takeReasons() != "" {
		t.Error("a pool that was in sync all along is news")
	}
}
