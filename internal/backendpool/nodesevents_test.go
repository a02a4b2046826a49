// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

func ofNodes(p *v1alpha1.BackendPool) {
	p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
}

// words returns the events on the BackendPool that speak of attempts.
func (d *desk) words() string {
	d.Helper()
	var said []string
	for e, waits := d.world.next(); waits; e, waits = d.world.next() {
		word, attempt := strings.CutPrefix(e.Reason, EventUpdated[:len(EventUpdated)-len("Updated")])
		if !attempt {
			continue
		}
		if e.about != "BackendPool" || (e.Kind == corev1.EventTypeNormal) != (e.Reason == EventUpdated) {
			d.Errorf("event %s %s on %s", e.Kind, e.Reason, e.about)
		}
		if e.Reason == EventFailed && !strings.HasSuffix(e.Text, "Bad: no way. To retrigger, set and unset spec.paused.") {
			d.Errorf("event %q", e.Text)
		}
		said = append(said, word)
	}
	return strings.Join(said, " ")
}

// A pool of nodes says itself what a Service would be told, when that becomes another word.
func TestAPoolOfNodesSpeaksForItself(t *testing.T) {
	d := atDesk(t, ofNodes)
	for _, tt := range []struct {
		name    string
		outcome poolupdate.Outcome
		edit    func(*poolupdate.Report)
		says    string
	}{
		{"it was level already", poolupdate.Unchanged, nil, ""},
		{"the first write", poolupdate.Written, nil, "Updated"},
		{"the next", poolupdate.Written, nil, ""},
		{"a failure", poolupdate.Retriable, requeued, "UpdateRetrying"},
		{"another", poolupdate.Retriable, requeued, ""},
		{"no attempt", poolupdate.Postponed, nil, ""},
		{"the pool is gone", poolupdate.Stale, nil, ""},
		{"it is one of network interfaces", poolupdate.Refused, nil, ""},
		{"the budget is spent", poolupdate.Retriable, nil, "UpdateFailed"},
		{"a look fails, too", poolupdate.Terminal, nil, ""},
		{"the write had landed", poolupdate.Unchanged, nil, "Updated"},
		{"a failure for good", poolupdate.Terminal, nil, "UpdateFailed"},
		{"stopped", poolupdate.Shutdown, nil, ""},
		{"a write", poolupdate.Written, nil, "Updated"},
	} {
		d.reports(tt.outcome, func(r *poolupdate.Report) {
			if tt.edit != nil {
				tt.edit(r)
			}
		})
		if got := d.words(); got != tt.says {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.says)
		}
	}
}

// Nobody hears twice of what an earlier process said.
func TestAPoolOfNodesRemembersItsWord(t *testing.T) {
	for _, tt := range []struct {
		before poolupdate.Outcome
		edit   func(*poolupdate.Report)
		after  poolupdate.Outcome
		again  func(*poolupdate.Report)
		says   string
	}{
		{poolupdate.Written, nil, poolupdate.Written, nil, ""},
		{poolupdate.Terminal, nil, poolupdate.Terminal, nil, ""},
		{poolupdate.Terminal, nil, poolupdate.Unchanged, nil, "Updated"},
		{poolupdate.Retriable, requeued, poolupdate.Retriable, requeued, ""},
		{poolupdate.Retriable, requeued, poolupdate.Retriable, nil, "UpdateFailed"},
		{poolupdate.Retriable, nil, poolupdate.Retriable, nil, ""},
		{poolupdate.Stale, nil, poolupdate.Unchanged, nil, ""},
	} {
		d := atDesk(t, ofNodes)
		tell := func(o poolupdate.Outcome, edit func(*poolupdate.Report)) {
			if edit == nil {
				edit = func(*poolupdate.Report) {}
			}
			d.reports(o, edit)
		}
		tell(tt.before, tt.edit)
		d.words()
		status := *d.status().DeepCopy()
		d.becomes(func(p *v1alpha1.BackendPool) { p.Status = status })
		d.api.stored = d.p
		d.statuses.drop(d.p.Namespace, d.p.Name, "")
		if _, err := d.statuses.Load(t.Context(), RefOf(d.p), time.Now()); err != nil {
			t.Fatal(err)
		}
		tell(tt.after, tt.again)
		if got := d.words(); got != tt.says {
			t.Errorf("%s, restart, %s: %q, want %q", tt.before, tt.after, got, tt.says)
		}
	}
}

// The Service is told where there is one, and a removal is nobody's update.
func TestWhoElseSaysNothingOfAttempts(t *testing.T) {
	d := atDesk(t)
	d.reports(poolupdate.Written)
	d.reports(poolupdate.Terminal)
	if got := d.words(); got != "" {
		t.Errorf("a pool of a Service says %s", got)
	}
	d = atDesk(t, ofNodes, took, deleting)
	d.status().PoolID = d.p.Status.PoolID
	d.reports(poolupdate.Terminal)
	if got := d.words(); got != "" {
		t.Errorf("one that goes says %s", got)
	}
	d = atDesk(t, ofNodes, paused)
	d.reports(poolupdate.Terminal)
	if got := d.words(); got != "" {
		t.Errorf("one that is paused says %s", got)
	}
}
