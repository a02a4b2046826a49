// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

func (fx *fixture) reportToService(o diff.Outcome, givenUpFor string, edit ...func(*updater.Report)) {
	fx.Helper()
	name := []schedule.ServiceName{{Namespace: fx.p.Namespace, Name: fx.p.Spec.ServiceRef.Name}}
	fx.reportAttempt(o, append([]func(*updater.Report){func(r *updater.Report) {
		switch r.FailureReason = givenUpFor; {
		case r.InSync:
			r.Updated = name
		case givenUpFor != "":
			r.Failed = name
		default:
			r.Retrying, r.WillRetry = name, true
		}
	}}, edit...)...)
}

// restartProcess replaces the process; only the API server's content remains.
func (fx *fixture) restartProcess() schedule.LastNotification {
	fx.Helper()
	stored := fx.p.DeepCopy()
	fx.poolStatus().DeepCopyInto(&stored.Status)
	fx.api.stored = stored
	fx.cluster.restartProcess(fx.api)
	fx.world.events = nil
	fx.workers.ops = nil
	fx.reconcileNow()
	if len(fx.workers.ops) == 0 {
		fx.Fatal("nothing is queued")
	}
	for _, op := range fx.workers.ops {
		if !op.ChangedAt.IsZero() {
			fx.Error("a restart counts as a change")
		}
	}
	return fx.workers.ops[0].LastNotification
}

func (fx *fixture) assertNotification(want schedule.LastNotification) {
	fx.Helper()
	if got := fx.restartProcess(); got != want {
		fx.Errorf("recalls %+v of %+v, want %+v", got, fx.poolStatus().LastEvent, want)
	}
}

// The next process knows the last event and the abandoned change, wherever this one stops.
func TestLastEventIsReadBack(t *testing.T) {
	d := newFixture(t)
	failed := schedule.LastNotification{IsFailure: true, FailureReason: "Terminal Bad"}
	for _, step := range []struct {
		name string
		does func()
		want schedule.LastNotification
	}{
		{"an attempt of which nobody was told", func() { d.reportAttempt(diff.Unchanged, withManagedAddress) }, schedule.LastNotification{}},
		{"Retrying", func() { d.reportToService(diff.Retriable, "") }, schedule.LastNotification{IsFailure: true}},
		{"killed in the midst of a write", func() { d.recordMembers() }, schedule.LastNotification{IsFailure: true}},
		{"Failed", func() { d.reportToService(diff.Terminal, "Terminal Bad") }, failed},
		{"a silent look, for the same", func() {
			d.reportAttempt(diff.Terminal, func(r *updater.Report) { r.FailureReason = "Terminal Bad" })
		}, failed},
		{"killed in the midst of another", func() { d.recordMembers() }, failed},
		{"an attempt that was put off", func() { d.reportAttempt(diff.Postponed) }, failed},
		{"gone: nobody is told, and nothing is given up", func() { d.reportAttempt(diff.Stale) }, schedule.LastNotification{IsFailure: true}},
		{"Failed, for a very long code", func() { d.reportToService(diff.Terminal, "Terminal "+strings.Repeat("x", 500)) },
			schedule.LastNotification{IsFailure: true, FailureReason: "Terminal " + strings.Repeat("x", humanize.MaxCode-len("Terminal …")) + "…"}},
		{"Updated", func() { d.reportToService(diff.Written, "", withManagedAddress) }, schedule.LastNotification{}},
	} {
		t.Run(step.name, func(t *testing.T) {
			d.T = t
			step.does()
			d.assertNotification(step.want)
		})
	}
}

func (fx *fixture) recordMembers() {
	fx.Helper()
	if err := fx.Record(fx.Context(), RefOf(fx.p), diff.Intent{Written: ours, Add: 1}); err != nil {
		fx.Fatal(err)
	}
}

// The last event of one Service does not apply to the next Service of the BackendPool.
func TestLastEventBelongsToItsService(t *testing.T) {
	d := newFixture(t)
	d.reportToService(diff.Terminal, "Terminal Bad")
	if got := *d.poolStatus().LastEvent; got != (v1alpha1.LastEvent{Reason: EventFailed, Service: "web", GivenUpFor: "Terminal Bad", Problem: v1alpha1.ReasonFailed}) {
		t.Errorf("%+v", got)
	}
	e := d.statuses.GetEntry(RefOf(d.p))
	if got := e.lastNotification("another"); got != (schedule.LastNotification{}) {
		t.Errorf("another Service: %+v", got)
	}
}

// A warning on the BackendPool is not repeated by the next process.
func TestProblemIsReportedOnceAcrossProcesses(t *testing.T) {
	d := newFixture(t)
	d.reportAttempt(diff.Terminal)
	if got := d.takeReasons(); got != "BackendPool Failed" {
		t.Fatal(got)
	}
	for _, ends := range []func(){func() {}, d.recordMembers} {
		ends()
		d.restartProcess()
		d.reportAttempt(diff.Terminal)
		if got := d.takeReasons(); got != "" {
			t.Errorf("told again: %s", got)
		}
	}
	d.reportAttempt(diff.Written, withManagedAddress)
	d.restartProcess()
	d.reportAttempt(diff.Terminal)
	if got := d.takeReasons(); got != "BackendPool Failed" {
		t.Errorf("once it was in sync in between: %q", got)
	}
}

// The status is written before the event, so a crash between them loses no state.
func TestStatusIsWrittenBeforeTheEvent(t *testing.T) {
	d := newFixture(t)
	waiting := 0
	d.api.applied = func() { waiting = len(d.world.events) }
	d.reportToService(diff.Terminal, "Terminal Bad")
	if waiting != 0 {
		t.Errorf("%d events were on their way before the status was written", waiting)
	}
	if got := d.takeReasons(); !strings.Contains(got, "Service "+EventFailed) {
		t.Errorf("told: %s", got)
	}
	// The Service gets its event even without the BackendPool.
	r := updater.Report{Ref: schedule.Ref{Namespace: d.p.Namespace, Name: "gone", UID: "u"}, Pool: lb.PoolID{}, Outcome: diff.Terminal}
	r.Failed = []schedule.ServiceName{{Namespace: d.p.Namespace, Name: "web"}}
	d.Report(d.Context(), r)
	if got := d.takeReasons(); got != "Service "+EventFailed {
		t.Errorf("told: %s", got)
	}
}
