// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

var errAPI = errors.New("the API server is away")

func TestUnrecordedMembersAreNotWritten(t *testing.T) {
	c, api, p := newRecordedPool(t)
	c.desiredOf(t, RefOf(p))
	intent := diff.Intent{Written: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Add: 1}
	api.fail = errAPI
	if err := c.Record(t.Context(), RefOf(p), intent); !errors.Is(err, errAPI) {
		t.Fatalf("recording while the API is away: %v", err)
	}
	if got := c.desiredOf(t, RefOf(p)).Record; got.Adopted || len(got.Written) != 0 {
		t.Errorf("a record that failed stands: %+v", got)
	}
	api.fail = nil
	// The API server may have accepted the record, so the next write replaces it.
	if err := c.statuses.flushStatus(t.Context(), c.statuses.GetEntry(RefOf(p)), time.Now()); err != nil || len(api.writes) != 1 {
		t.Errorf("%v, %d writes, want one", err, len(api.writes))
	}
	if err := c.Record(t.Context(), RefOf(p), intent); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(api.writes[1].WrittenAddresses); got != "[10.0.0.1]" {
		t.Errorf("recorded %s", got)
	}
	if err := c.Record(t.Context(), schedule.Ref{Namespace: "shop", Name: "a", UID: "other"}, intent); !errors.Is(err, metadata.ErrDeleted) {
		t.Errorf("recording for another BackendPool of the name: %v", err)
	}
}

func TestReportThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	c, api, p := newRecordedPool(t)
	api.fail = errAPI
	c.Report(t.Context(), updater.Report{Ref: RefOf(p), Outcome: diff.Written, InSync: true, At: time.Unix(0, 0)})
	if queue := c.world.queued; len(queue) != 1 || queue[0].Name != "a" {
		t.Fatalf("queued: %v, want a", queue)
	}
	if _, err := c.reconcilePool(t, p); !errors.Is(err, errAPI) {
		t.Fatalf("the work queue is to retry, got %v", err)
	}
	api.fail = nil
	e := c.statuses.GetEntry(RefOf(p))
	for range 2 { // the second time nothing is left to write
		if err := c.statuses.flushStatus(t.Context(), e, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if len(api.writes) != 1 || e.currentReason() != v1alpha1.ReasonInSync {
		t.Errorf("%d writes, reason %s; want one write of InSync", len(api.writes), e.currentReason())
	}
}

func TestPoolReportsWhatItWaitsFor(t *testing.T) {
	c, api, p := newRecordedPool(t)
	waiting := updater.Report{Ref: RefOf(p), Outcome: diff.Postponed, Fault: &armerror.Fault{Err: errors.New("waiting: a write is still under way")}}
	c.Report(t.Context(), waiting)
	c.Report(t.Context(), waiting) // unchanged
	e := c.statuses.GetEntry(RefOf(p))
	if e.currentReason() != v1alpha1.ReasonUpdating || len(api.writes) != 1 || !strings.Contains(fmt.Sprint(api.writes[0].Conditions), "still under way") {
		t.Errorf("reason %s after %d writes: %v", e.currentReason(), len(api.writes), api.writes)
	}
	if e.status.LastOutcome != nil {
		t.Error("what was no attempt is told as one")
	}
}

// An error is not an empty set, which would drain the pool.
func TestNoAnswerIsNotAnEmptySet(t *testing.T) {
	c, _, p := newRecordedPool(t)
	ref := RefOf(p)
	swap := func(edit func(*v1alpha1.BackendPool)) {
		next := p.DeepCopy()
		edit(next)
		c.world.addObjects(next)
	}
	for name, edit := range map[string]func(*v1alpha1.BackendPool){
		"paused": asPaused,
		"invalid": func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			p.Spec.Nodes.Selector.MatchLabels = map[string]string{"a b": "c"}
		},
		"another of its name": func(p *v1alpha1.BackendPool) { p.UID = "other" },
	} {
		swap(edit)
		if _, err := c.DesiredPool(ref); err == nil {
			t.Errorf("%s: the attempt goes on with an empty set", name)
		}
	}
	swap(func(*v1alpha1.BackendPool) {})
	if _, err := c.DesiredPool(ref); err != nil {
		t.Errorf("as before: %v", err)
	}
}

// The Down addresses, reasons and times survive an unrelated write.
func TestStatusListsDownAddresses(t *testing.T) {
	c, api, p := newRecordedPool(t)
	ref, e := RefOf(p), c.statuses.GetEntry(RefOf(p))
	single, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	own := []netip.Addr{single, two}
	record := func(down ...netip.Addr) {
		t.Helper()
		if err := c.Record(t.Context(), ref, diff.Intent{Written: own, Down: down}); err != nil {
			t.Fatal(err)
		}
	}
	report := func(down ...netip.Addr) []v1alpha1.DownAddress {
		c.Report(t.Context(), updater.Report{Ref: ref, Outcome: diff.Written, InSync: true, Written: own, Down: down, At: time.Now()})
		return e.status.Down
	}
	e.recordInput(membership.Set{Draining: []membership.Drain{{Node: "n1", IP: single, Reason: "spot-eviction"}}}, operationInput{})
	record(single)
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	e.status.Down[0].Since = since
	record(single, two)
	if got := e.readRecord(); fmt.Sprint(got.Down) != "[10.0.0.1 10.0.0.2]" {
		t.Errorf("%+v", got)
	}
	e.recordInput(membership.Set{}, operationInput{}) // the reason remains while it is Down
	down := report(single)
	want := v1alpha1.DownAddress{Address: "10.0.0.1", Node: "n1", Reason: "spot-eviction", Since: since}
	if len(down) != 1 || down[0] != want || *e.status.DownCount != 1 {
		t.Errorf("%+v, want %+v", down, want)
	}
	if written := api.writes[len(api.writes)-1].Down; len(written) != 1 || written[0].Reason != "spot-eviction" {
		t.Errorf("the API has %+v", written)
	}
	if text := updatingMessage(diff.Intent{Update: 2}); !strings.HasPrefix(text, "changing the admin state of 2;") {
		t.Error(text)
	}
	setCondition(&e.status, 1, v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonInSync, "")
	both := membership.Set{Draining: []membership.Drain{{Node: "n1", IP: single, Reason: "out-of-service, spot-eviction"}}}
	if err := c.refreshSyncedStatus(t.Context(), p, e, both); err != nil || e.status.Down[0].Reason != "out-of-service, spot-eviction" || e.status.Down[0].Since != since {
		t.Errorf("a second taint: %v %+v", err, e.status.Down)
	}
	if down := report(); len(down) != 0 || e.status.DownCount != nil {
		t.Errorf("%+v are left", down)
	}
}

func TestAbandonedBackendPoolTakesNothing(t *testing.T) {
	c, _, p := newRecordedPool(t)
	e := c.statuses.GetEntry(RefOf(p))
	if !e.tryAbandon() {
		t.Fatal("a pool that was never taken cannot be abandoned")
	}
	if err := c.Record(t.Context(), RefOf(p), diff.Intent{}); !errors.Is(err, metadata.ErrDeleted) {
		t.Errorf("recording for an abandoned BackendPool: %v", err)
	}
	c, _, p = newRecordedPool(t)
	if err := c.Record(t.Context(), RefOf(p), diff.Intent{}); err != nil {
		t.Fatal(err)
	}
	if c.statuses.GetEntry(RefOf(p)).tryAbandon() {
		t.Error("a pool that is taken was abandoned")
	}
}
