// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

func asNodePool(p *v1alpha1.BackendPool) {
	p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
}

func (fx *fixture) takeEvents() string {
	fx.Helper()
	var output []string
	for e, waits := fx.world.nextEvent(); waits; e, waits = fx.world.nextEvent() {
		word, attempt := strings.CutPrefix(e.Reason, EventUpdated[:len(EventUpdated)-len("Updated")])
		if !attempt {
			continue
		}
		if e.about != "BackendPool" || (e.Kind == corev1.EventTypeNormal) != (e.Reason == EventUpdated) {
			fx.Errorf("event %s %s on %s", e.Kind, e.Reason, e.about)
		}
		if e.Reason == EventFailed && !strings.HasSuffix(e.Text, "Bad: no way. To retrigger: weir retry.") {
			fx.Errorf("event %q", e.Text)
		}
		output = append(output, word)
	}
	return strings.Join(output, " ")
}

// A pool of nodes gets the events of a Service when the reason changes.
func TestNodePoolHasEventsOfItsOwn(t *testing.T) {
	d := newFixture(t, asNodePool)
	for _, tt := range []struct {
		name     string
		outcome  diff.Outcome
		edit     func(*updater.Report)
		wantText string
	}{
		{"it was in sync already", diff.Unchanged, nil, ""},
		{"the first write", diff.Written, nil, "Updated"},
		{"the next", diff.Written, nil, ""},
		{"a failure", diff.Retriable, withRequeue, "UpdateRetrying"},
		{"another", diff.Retriable, withRequeue, ""},
		{"no attempt", diff.Postponed, nil, ""},
		{"the pool is gone", diff.Stale, nil, ""},
		{"it is one of network interfaces", diff.Rejected, nil, ""},
		{"the budget is spent", diff.Retriable, nil, "UpdateFailed"},
		{"a look fails, too", diff.Terminal, nil, ""},
		{"the write had landed", diff.Unchanged, nil, "Updated"},
		{"a failure for good", diff.Terminal, nil, "UpdateFailed"},
		{"stopped", diff.Shutdown, nil, ""},
		{"a write", diff.Written, nil, "Updated"},
	} {
		d.reportAttempt(tt.outcome, func(r *updater.Report) {
			if tt.edit != nil {
				tt.edit(r)
			}
		})
		if got := d.takeEvents(); got != tt.wantText {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.wantText)
		}
	}
}

// The events of an earlier process are not repeated.
func TestNodePoolKeepsItsLastEvent(t *testing.T) {
	for _, tt := range []struct {
		before   diff.Outcome
		edit     func(*updater.Report)
		after    diff.Outcome
		repeat   func(*updater.Report)
		wantText string
	}{
		{diff.Written, nil, diff.Written, nil, ""},
		{diff.Terminal, nil, diff.Terminal, nil, ""},
		{diff.Terminal, nil, diff.Unchanged, nil, "Updated"},
		{diff.Retriable, withRequeue, diff.Retriable, withRequeue, ""},
		{diff.Retriable, withRequeue, diff.Retriable, nil, "UpdateFailed"},
		{diff.Retriable, nil, diff.Retriable, nil, ""},
		{diff.Stale, nil, diff.Unchanged, nil, ""},
	} {
		d := newFixture(t, asNodePool)
		tell := func(o diff.Outcome, edit func(*updater.Report)) {
			if edit == nil {
				edit = func(*updater.Report) {}
			}
			d.reportAttempt(o, edit)
		}
		tell(tt.before, tt.edit)
		d.takeEvents()
		status := *d.poolStatus().DeepCopy()
		d.updatePool(func(p *v1alpha1.BackendPool) { p.Status = status })
		d.api.stored = d.p
		d.statuses.dropOthers(d.p.Namespace, d.p.Name, "")
		if _, err := d.statuses.LoadEntry(t.Context(), d.p, time.Now()); err != nil {
			t.Fatal(err)
		}
		tell(tt.after, tt.repeat)
		if got := d.takeEvents(); got != tt.wantText {
			t.Errorf("%s, restart, %s: %q, want %q", tt.before, tt.after, got, tt.wantText)
		}
	}
}

// With a Service, the Service gets the events; a removal has none.
func TestForeignReportsNameNoAttempts(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(diff.Written)
	d.reportAttempt(diff.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("a pool of a Service says %s", got)
	}
	d = newFixture(t, asNodePool, took, deleting)
	d.poolStatus().PoolID = d.p.Status.PoolID
	d.reportAttempt(diff.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("one that goes says %s", got)
	}
	d = newFixture(t, asNodePool, asPaused)
	d.reportAttempt(diff.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("one that is paused says %s", got)
	}
}
