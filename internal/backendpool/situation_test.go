// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

func (c *cluster) desired(t *testing.T, ref poolschedule.Ref) poolwrite.Desired {
	t.Helper()
	d, err := c.Desired(ref)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (c *cluster) situationNow(t *testing.T, p *v1alpha1.BackendPool) situation {
	t.Helper()
	set, err := c.Cluster.Members(p)
	if err != nil {
		t.Fatal(err)
	}
	return situationOf(p, c.Entitlement(p, time.Now()), set)
}

// A node is missing during an attempt and returns before the next reconciliation: the situation equals that of
// the first operation, and still another operation is needed.
func TestWhatAnAttemptSawIsWhatCounts(t *testing.T) {
	p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
	})
	c, e := loaded(t, p, nil, "n1", "n2")
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	if e.due(c.situationNow(t, p), time.Now()) {
		t.Error("the same situation queues twice")
	}
	delete(c.world.nodes, "n2")
	if got := len(c.desired(t, e.ref).Addresses); got != 1 {
		t.Fatalf("the attempt wants %d addresses", got)
	}
	c.world.nodes["n2"] = nodeAt("n2")
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Error("n2 is back, the attempt left it out, and nothing follows")
	}
}

// The same for a Service that is deleted, recreated and deleted.
func TestServiceThatGoesTwiceIsDrainedTwice(t *testing.T) {
	p := bp("a", 0, took)
	c, e := loaded(t, p, nil)
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	svc := serviceOfType(corev1.ServiceTypeLoadBalancer)
	c.world.add(svc)
	c.desired(t, e.ref) // an attempt for the Service
	c.world.deletes(svc)
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Error("the Service is gone again, and nothing removes what the attempt wrote")
	}
}

func TestWhenToLookAgain(t *testing.T) {
	opts := Config{RecheckAfter: 5 * time.Minute, ReleaseAgainAfter: time.Minute}
	filling := Entitlement{State: Active}
	draining := Entitlement{State: ServiceGone, Taken: true}
	leaving := Entitlement{State: Active, Taken: true, Deleting: true}
	ended := func(o poolwrite.Outcome) poolupdate.Report {
		return poolupdate.Report{Outcome: o, At: time.Unix(0, 0)}
	}
	level := poolupdate.Report{Outcome: poolwrite.Written, Settled: true, At: time.Unix(0, 0)}
	missing := func(code string) poolupdate.Report {
		return poolupdate.Report{Outcome: poolwrite.Stale, At: time.Unix(0, 0), Fault: &fault.Fault{Class: fault.Stale, Code: code}}
	}
	nameless, named := missing(fault.CodeNotFound), missing("ResourceNotFound")
	tests := []struct {
		name     string
		standing Entitlement
		attempts []poolupdate.Report
		after    time.Duration // 0 for never
		released bool
	}{
		{"level", filling, []poolupdate.Report{level}, 0, false},
		{"failed", filling, []poolupdate.Report{ended(poolwrite.Terminal)}, 0, false},
		{"no pool", filling, []poolupdate.Report{ended(poolwrite.Stale)}, 5 * time.Minute, false},
		{"interfaces", filling, []poolupdate.Report{ended(poolwrite.Refused)}, 5 * time.Minute, false},
		{"no pool, then Azure fails", filling, []poolupdate.Report{ended(poolwrite.Stale), ended(poolwrite.Terminal), ended(poolwrite.Terminal)}, 5 * time.Minute, false},
		{"no pool, then level, then failed", filling, []poolupdate.Report{ended(poolwrite.Stale), level, ended(poolwrite.Terminal)}, 0, false},
		{"drained", draining, []poolupdate.Report{level}, 0, false},
		{"draining fails", draining, []poolupdate.Report{ended(poolwrite.Terminal)}, time.Minute, false},
		{"draining finds no pool", draining, []poolupdate.Report{ended(poolwrite.Stale)}, 5 * time.Minute, false},
		{"leaving", leaving, []poolupdate.Report{level}, 0, true},
		{"leaving fails", leaving, []poolupdate.Report{ended(poolwrite.Terminal)}, time.Minute, false},
		{"leaving a pool that is gone", leaving, []poolupdate.Report{ended(poolwrite.Stale)}, 0, true},
		{"leaving a pool that Azure names as gone", leaving, []poolupdate.Report{named}, 0, true},
		{"leaving, and a 404 names nothing", leaving, []poolupdate.Report{nameless}, time.Minute, false},
		{"leaving, and two in a row do", leaving, []poolupdate.Report{nameless, nameless}, 0, true},
		{"leaving, and two do that are not in a row", leaving, []poolupdate.Report{nameless, ended(poolwrite.Terminal), nameless}, time.Minute, false},
		{"filling, and a 404 names nothing", filling, []poolupdate.Report{nameless}, 5 * time.Minute, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Entry{}
			for _, r := range tt.attempts {
				e.recheckAt = time.Time{} // due
				e.schedule(tt.standing, r, opts)
			}
			var after time.Duration
			if !e.recheckAt.IsZero() {
				after = e.recheckAt.Sub(time.Unix(0, 0))
			}
			if after != tt.after || e.released != tt.released {
				t.Errorf("again after %s, released %v; want %s, %v", after, e.released, tt.after, tt.released)
			}
		})
	}
}

// A pool that was read before keeps that while it is queued again; a deleted one never reports in sync.
func TestWhatAQueuedPoolSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(*v1alpha1.BackendPool)
		reason string
		says   string
	}{
		{"new", func(*v1alpha1.BackendPool) {}, v1alpha1.ReasonPending, "nothing has been read"},
		{"read before a pause", func(p *v1alpha1.BackendPool) { took(p); p.Status.LastOutcome = &v1alpha1.AttemptOutcome{} }, v1alpha1.ReasonUpdating, "read again"},
		{"being deleted", func(p *v1alpha1.BackendPool) { took(p); deleting(p) }, v1alpha1.ReasonUpdating, "being deleted; its addresses are being removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, api, p := recorded(t)
			lanes := &queued{}
			c.Lanes = lanes
			tt.before(p)
			c.startsAnew(api)
			if _, err := c.reconciled(t, p); err != nil {
				t.Fatal(err)
			}
			got := meta.FindStatusCondition(c.statuses.Known(RefOf(p)).status.Conditions, v1alpha1.ConditionSynced)
			if len(lanes.ops) != 1 || got == nil || got.Reason != tt.reason || !strings.Contains(got.Message, tt.says) {
				t.Errorf("%d operations, %+v; want one, %s and %q", len(lanes.ops), got, tt.reason, tt.says)
			}
		})
	}
}

// The attempt that set an interface Down ends after the BackendPool was deleted. Release must wait for an
// attempt that reverts it.
func TestAnAttemptThatTookNothingBackReleasesNothing(t *testing.T) {
	st := Entitlement{State: Active, Deleting: true, Taken: true}
	for wanted, released := range map[int]bool{1: false, 0: true} {
		e := &Entry{}
		e.schedule(st, poolupdate.Report{Outcome: poolwrite.Refused, States: true, Desired: wanted}, Config{})
		if e.Released() != released {
			t.Errorf("%d members wanted: released %v", wanted, !released)
		}
	}
}

// A retry request is handled once; a new process tries everything.
func TestARetryThatPeopleAskFor(t *testing.T) {
	d := atDesk(t)
	asks := func(at string) {
		d.becomes(func(p *v1alpha1.BackendPool) { p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: at} })
	}
	asks("before")
	for _, step := range []struct {
		asks          string
		retried, adds int
	}{{"", 0, 1}, {"12:00", 1, 2}, {"", 1, 2}, {"12:01", 2, 3}} {
		if step.asks != "" {
			asks(step.asks)
		}
		if d.reconciles(); d.lanes.retried != step.retried || len(d.lanes.ops) != step.adds {
			t.Errorf("asked %q: %d retries, %d operations; want %d, %d", step.asks, d.lanes.retried, len(d.lanes.ops), step.retried, step.adds)
		}
	}
	if op := d.lanes.ops[1]; op.ChangedAt.IsZero() {
		t.Error("nobody is said to wait for it")
	}
}

// A retry request reads a pool that is in sync: it may have been changed in Azure.
func TestALevelPoolThatPeopleAskForIsRead(t *testing.T) {
	d := atDesk(t)
	d.reconciles()
	d.reports(poolwrite.Written)
	d.says(v1alpha1.ReasonLevel, "level")
	d.lanes.level = true
	if d.reconciles(); len(d.lanes.ops) != 1 {
		t.Errorf("%d operations of a level pool that nobody asks for, want the first alone", len(d.lanes.ops))
	}
	d.becomes(func(p *v1alpha1.BackendPool) { p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: "12:00"} })
	if d.reconciles(); len(d.lanes.ops) != 2 {
		t.Errorf("%d operations, want another one", len(d.lanes.ops))
	}
	d.says(v1alpha1.ReasonUpdating, "read again")
	d.reports(poolwrite.Unchanged)
	if d.says(v1alpha1.ReasonLevel, "level"); d.said() != "" {
		t.Error("a pool that was level all along is news")
	}
}
