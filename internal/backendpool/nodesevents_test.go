// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

func asNodePool(p *v1alpha1.BackendPool) {
	p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
}

func (d *fixture) takeEvents() string {
	d.Helper()
	var said []string
	for e, waits := d.world.nextEvent(); waits; e, waits = d.world.nextEvent() {
		word, attempt := strings.CutPrefix(e.Reason, EventUpdated[:len(EventUpdated)-len("Updated")])
		if !attempt {
			continue
		}
		if e.about != "BackendPool" || (e.Kind == corev1.EventTypeNormal) != (e.Reason == EventUpdated) {
			d.Errorf("event %s %s on %s", e.Kind, e.Reason, e.about)
		}
		if e.Reason == EventFailed && !strings.HasSuffix(e.Text, "Bad: no way. To retrigger: weir retry.") {
			d.Errorf("event %q", e.Text)
		}
		said = append(said, word)
	}
	return strings.Join(said, " ")
}

// A pool of nodes gets the events of a Service when the reason changes.
func TestAPoolOfNodesSpeaksForItself(t *testing.T) {
	d := newFixture(t, asNodePool)
	for _, tt := range []struct {
		name    string
		outcome poolwrite.Outcome
		edit    func(*poolupdate.Report)
		says    string
	}{
		{"it was level already", poolwrite.Unchanged, nil, ""},
		{"the first write", poolwrite.Written, nil, "Updated"},
		{"the next", poolwrite.Written, nil, ""},
		{"a failure", poolwrite.Retriable, withRequeue, "UpdateRetrying"},
		{"another", poolwrite.Retriable, withRequeue, ""},
		{"no attempt", poolwrite.Postponed, nil, ""},
		{"the pool is gone", poolwrite.Stale, nil, ""},
		{"it is one of network interfaces", poolwrite.Rejected, nil, ""},
		{"the budget is spent", poolwrite.Retriable, nil, "UpdateFailed"},
		{"a look fails, too", poolwrite.Terminal, nil, ""},
		{"the write had landed", poolwrite.Unchanged, nil, "Updated"},
		{"a failure for good", poolwrite.Terminal, nil, "UpdateFailed"},
		{"stopped", poolwrite.Shutdown, nil, ""},
		{"a write", poolwrite.Written, nil, "Updated"},
	} {
		d.reportAttempt(tt.outcome, func(r *poolupdate.Report) {
			if tt.edit != nil {
				tt.edit(r)
			}
		})
		if got := d.takeEvents(); got != tt.says {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.says)
		}
	}
}

// The events of an earlier process are not repeated.
func TestAPoolOfNodesRemembersItsWord(t *testing.T) {
	for _, tt := range []struct {
		before poolwrite.Outcome
		edit   func(*poolupdate.Report)
		after  poolwrite.Outcome
		again  func(*poolupdate.Report)
		says   string
	}{
		{poolwrite.Written, nil, poolwrite.Written, nil, ""},
		{poolwrite.Terminal, nil, poolwrite.Terminal, nil, ""},
		{poolwrite.Terminal, nil, poolwrite.Unchanged, nil, "Updated"},
		{poolwrite.Retriable, withRequeue, poolwrite.Retriable, withRequeue, ""},
		{poolwrite.Retriable, withRequeue, poolwrite.Retriable, nil, "UpdateFailed"},
		{poolwrite.Retriable, nil, poolwrite.Retriable, nil, ""},
		{poolwrite.Stale, nil, poolwrite.Unchanged, nil, ""},
	} {
		d := newFixture(t, asNodePool)
		tell := func(o poolwrite.Outcome, edit func(*poolupdate.Report)) {
			if edit == nil {
				edit = func(*poolupdate.Report) {}
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
		tell(tt.after, tt.again)
		if got := d.takeEvents(); got != tt.says {
			t.Errorf("%s, restart, %s: %q, want %q", tt.before, tt.after, got, tt.says)
		}
	}
}

// With a Service, the Service gets the events; a removal has none.
func TestWhoElseSaysNothingOfAttempts(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(poolwrite.Written)
	d.reportAttempt(poolwrite.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("a pool of a Service says %s", got)
	}
	d = newFixture(t, asNodePool, took, deleting)
	d.poolStatus().PoolID = d.p.Status.PoolID
	d.reportAttempt(poolwrite.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("one that goes says %s", got)
	}
	d = newFixture(t, asNodePool, asPaused)
	d.reportAttempt(poolwrite.Terminal)
	if got := d.takeEvents(); got != "" {
		t.Errorf("one that is paused says %s", got)
	}
}
