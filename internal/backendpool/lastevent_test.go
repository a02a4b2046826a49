// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/words"
)

func (d *desk) told(o poolwrite.Outcome, givenUpFor string, edit ...func(*poolupdate.Report)) {
	d.Helper()
	name := []poolschedule.ServiceName{{Namespace: d.p.Namespace, Name: d.p.Spec.ServiceRef.Name}}
	d.reports(o, append([]func(*poolupdate.Report){func(r *poolupdate.Report) {
		switch r.GivenUpFor = givenUpFor; {
		case r.Settled:
			r.Updated = name
		case givenUpFor != "":
			r.Failed = name
		default:
			r.Retrying, r.Requeued = name, true
		}
	}}, edit...)...)
}

// startsAnew replaces the process; only the API server's content remains.
func (d *desk) startsAnew() poolschedule.Told {
	d.Helper()
	stored := d.p.DeepCopy()
	d.status().DeepCopyInto(&stored.Status)
	d.api.stored = stored
	d.cluster.startsAnew(d.api)
	d.world.told = nil
	d.lanes.ops = nil
	d.reconciles()
	if len(d.lanes.ops) == 0 {
		d.Fatal("nothing is queued")
	}
	for _, op := range d.lanes.ops {
		if !op.ChangedAt.IsZero() {
			d.Error("a restart counts as a change")
		}
	}
	return d.lanes.ops[0].Told
}

func (d *desk) recalls(want poolschedule.Told) {
	d.Helper()
	if got := d.startsAnew(); got != want {
		d.Errorf("recalls %+v of %+v, want %+v", got, d.status().Told, want)
	}
}

// The next process knows the last event and the abandoned change, wherever this one stops.
func TestTheLastWordIsReadBack(t *testing.T) {
	d := atDesk(t)
	failed := poolschedule.Told{Failure: true, GivenUpFor: "Terminal Bad"}
	for _, step := range []struct {
		name string
		does func()
		want poolschedule.Told
	}{
		{"an attempt of which nobody was told", func() { d.reports(poolwrite.Unchanged, addressesOfOurs) }, poolschedule.Told{}},
		{"Retrying", func() { d.told(poolwrite.Retriable, "") }, poolschedule.Told{Failure: true}},
		{"killed in the midst of a write", func() { d.records() }, poolschedule.Told{Failure: true}},
		{"Failed", func() { d.told(poolwrite.Terminal, "Terminal Bad") }, failed},
		{"a silent look, for the same", func() {
			d.reports(poolwrite.Terminal, func(r *poolupdate.Report) { r.GivenUpFor = "Terminal Bad" })
		}, failed},
		{"killed in the midst of another", func() { d.records() }, failed},
		{"an attempt that was put off", func() { d.reports(poolwrite.Postponed) }, failed},
		{"gone: nobody is told, and nothing is given up", func() { d.reports(poolwrite.Stale) }, poolschedule.Told{Failure: true}},
		{"Failed, for a very long code", func() { d.told(poolwrite.Terminal, "Terminal "+strings.Repeat("x", 500)) },
			poolschedule.Told{Failure: true, GivenUpFor: "Terminal " + strings.Repeat("x", words.MaxCode-len("Terminal …")) + "…"}},
		{"Updated", func() { d.told(poolwrite.Written, "", addressesOfOurs) }, poolschedule.Told{}},
	} {
		t.Run(step.name, func(t *testing.T) {
			d.T = t
			step.does()
			d.recalls(step.want)
		})
	}
}

func (d *desk) records() {
	d.Helper()
	if err := d.Record(d.Context(), RefOf(d.p), poolwrite.Intent{Written: ours, Add: 1}); err != nil {
		d.Fatal(err)
	}
}

// The last event of one Service does not apply to the next Service of the BackendPool.
func TestTheLastWordIsThatOfItsService(t *testing.T) {
	d := atDesk(t)
	d.told(poolwrite.Terminal, "Terminal Bad")
	if got := *d.status().Told; got != (v1alpha1.Told{Word: EventFailed, Service: "web", GivenUpFor: "Terminal Bad", Problem: v1alpha1.ReasonFailed}) {
		t.Errorf("%+v", got)
	}
	e := d.statuses.Known(RefOf(d.p))
	if got := e.lastTold("another"); got != (poolschedule.Told{}) {
		t.Errorf("another Service: %+v", got)
	}
}

// A warning on the BackendPool is not repeated by the next process.
func TestAProblemIsToldOnceByWhicheverProcess(t *testing.T) {
	d := atDesk(t)
	d.reports(poolwrite.Terminal)
	if got := d.said(); got != "BackendPool Failed" {
		t.Fatal(got)
	}
	for _, ends := range []func(){func() {}, d.records} {
		ends()
		d.startsAnew()
		d.reports(poolwrite.Terminal)
		if got := d.said(); got != "" {
			t.Errorf("told again: %s", got)
		}
	}
	d.reports(poolwrite.Written, addressesOfOurs)
	d.startsAnew()
	d.reports(poolwrite.Terminal)
	if got := d.said(); got != "BackendPool Failed" {
		t.Errorf("once it was level in between: %q", got)
	}
}

// The status is written before the event, so a crash between them loses no state.
func TestTheStatusKnowsBeforePeopleDo(t *testing.T) {
	d := atDesk(t)
	waiting := 0
	d.api.applied = func() { waiting = len(d.world.told) }
	d.told(poolwrite.Terminal, "Terminal Bad")
	if waiting != 0 {
		t.Errorf("%d events were on their way before the status was written", waiting)
	}
	if got := d.said(); !strings.Contains(got, "Service "+EventFailed) {
		t.Errorf("told: %s", got)
	}
	// The Service gets its event even without the BackendPool.
	r := poolupdate.Report{Ref: poolschedule.Ref{Namespace: d.p.Namespace, Name: "gone", UID: "u"}, Pool: lb.PoolID{}, Outcome: poolwrite.Terminal}
	r.Failed = []poolschedule.ServiceName{{Namespace: d.p.Namespace, Name: "web"}}
	d.Report(d.Context(), r)
	if got := d.said(); got != "Service "+EventFailed {
		t.Errorf("told: %s", got)
	}
}
