// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// statusAPI is the API server as far as a status is concerned.
type statusAPI struct {
	client.SubResourceWriter
	client.Reader
	stored *v1alpha1.BackendPool
	fail   error
	writes []map[string]any
	// applied is called before a write, if it is there.
	applied func()
}

func (a *statusAPI) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	a.stored.DeepCopyInto(obj.(*v1alpha1.BackendPool))
	return a.fail
}

func (a *statusAPI) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	if a.applied != nil {
		a.applied()
	}
	if a.fail != nil {
		return a.fail
	}
	fields := obj.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
	status, _, err := unstructured.NestedMap(fields, "status")
	a.writes = append(a.writes, status)
	return err
}

// recorded is a Cluster with one BackendPool, active and loaded.
func recorded(t *testing.T) (*Cluster, *statusAPI, *v1alpha1.BackendPool) {
	t.Helper()
	p := bp("a", 0)
	c := stored(t, p, serviceOfType(corev1.ServiceTypeLoadBalancer))
	api := &statusAPI{stored: p}
	c.opts = Options{Log: slog.New(slog.DiscardHandler)}
	c.statuses = &statuses{reader: api, writer: api, byRef: map[poolupdate.Ref]*entry{}}
	c.snap.taken = c.taken
	c.events = newEventQueue(Scheme(), nil, slog.Default())
	if _, err := c.statuses.load(t.Context(), refOf(p)); err != nil {
		t.Fatal(err)
	}
	return c, api, p
}

var errAPI = errors.New("the API server is away")

func TestWhatCannotBeRecordedIsNotWritten(t *testing.T) {
	c, api, p := recorded(t)
	c.desired(t, refOf(p))
	intent := poolupdate.Intent{Written: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Add: 1}
	api.fail = errAPI
	if err := c.Record(t.Context(), refOf(p), intent); !errors.Is(err, errAPI) {
		t.Fatalf("recording while the API is away: %v", err)
	}
	if got := c.desired(t, refOf(p)).Recorded; got.Taken || len(got.Written) != 0 {
		t.Errorf("a record that failed stands: %+v", got)
	}
	api.fail = nil
	// The API may have taken the record all the same, so the next write replaces it.
	if err := c.statuses.flush(t.Context(), c.statuses.known(refOf(p))); err != nil || len(api.writes) != 1 {
		t.Errorf("%v, %d writes, want one", err, len(api.writes))
	}
	if err := c.Record(t.Context(), refOf(p), intent); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(api.writes[1]["writtenAddresses"]); got != "[10.0.0.1]" {
		t.Errorf("recorded %s", got)
	}
	if err := c.Record(t.Context(), poolupdate.Ref{Namespace: "shop", Name: "a", UID: "other"}, intent); !errors.Is(err, errGone) {
		t.Errorf("recording for another BackendPool of the name: %v", err)
	}
}

func TestReportThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	c, api, p := recorded(t)
	api.fail = errAPI
	queue := &addOnly{}
	if err := c.wake.source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	c.Report(t.Context(), poolupdate.Report{Ref: refOf(p), Outcome: poolupdate.Written, Settled: true, At: time.Unix(0, 0)})
	if len(queue.added) != 1 || queue.added[0].Name != "a" {
		t.Fatalf("woken: %v, want a", queue.added)
	}
	req := queue.added[0]
	if _, err := c.reconcilePool(t.Context(), req); !errors.Is(err, errAPI) {
		t.Fatalf("the work queue is to retry, got %v", err)
	}
	api.fail = nil
	e := c.statuses.known(refOf(p))
	for range 2 { // the second time there is nothing left to write
		if err := c.statuses.flush(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if len(api.writes) != 1 || e.reason() != v1alpha1.ReasonLevel {
		t.Errorf("%d writes, reason %s; want one write of Level", len(api.writes), e.reason())
	}
}

func TestWhatAPoolWaitsForIsSaid(t *testing.T) {
	c, api, p := recorded(t)
	waiting := poolupdate.Report{Ref: refOf(p), Outcome: poolupdate.Postponed, Fault: &fault.Fault{Err: errors.New("waiting: a write is still under way")}}
	c.Report(t.Context(), waiting)
	c.Report(t.Context(), waiting) // nothing new
	e := c.statuses.known(refOf(p))
	if e.reason() != v1alpha1.ReasonUpdating || len(api.writes) != 1 || !strings.Contains(fmt.Sprint(api.writes[0]), "still under way") {
		t.Errorf("reason %s after %d writes: %v", e.reason(), len(api.writes), api.writes)
	}
	if e.status.LastOutcome != nil {
		t.Error("what was no attempt is told as one")
	}
}

// addOnly is a work queue that takes and never gives.
type addOnly struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []reconcile.Request
}

func (q *addOnly) Add(r reconcile.Request) { q.added = append(q.added, r) }

// An empty set would drain the pool, so no answer is not an empty set.
func TestNoAnswerIsNotAnEmptySet(t *testing.T) {
	c, _, p := recorded(t)
	ref := refOf(p)
	swap := func(edit func(*v1alpha1.BackendPool)) {
		next := p.DeepCopy()
		edit(next)
		if err := c.snap.pools.Update(next); err != nil {
			t.Fatal(err)
		}
	}
	for name, edit := range map[string]func(*v1alpha1.BackendPool){
		"paused": paused,
		"invalid": func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			p.Spec.Nodes.Selector.MatchLabels = map[string]string{"a b": "c"}
		},
		"another of its name": func(p *v1alpha1.BackendPool) { p.UID = "other" },
	} {
		swap(edit)
		if _, err := c.Desired(ref); err == nil {
			t.Errorf("%s: the attempt goes on with an empty set", name)
		}
	}
	swap(func(*v1alpha1.BackendPool) {})
	if _, err := c.Desired(ref); err != nil {
		t.Errorf("as before: %v", err)
	}
}

// Which addresses are Down by us, why, and since when outlives a write that has nothing to
// do with them.
func TestTheStatusSaysWhatIsDown(t *testing.T) {
	c, api, p := recorded(t)
	ref, e := refOf(p), c.statuses.known(refOf(p))
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	ours := []netip.Addr{one, two}
	record := func(down ...netip.Addr) {
		t.Helper()
		if err := c.Record(t.Context(), ref, poolupdate.Intent{Written: ours, Down: down}); err != nil {
			t.Fatal(err)
		}
	}
	report := func(down ...netip.Addr) []v1alpha1.DownAddress {
		c.Report(t.Context(), poolupdate.Report{Ref: ref, Outcome: poolupdate.Written, Settled: true, Written: ours, Down: down, At: time.Now()})
		return e.status.Down
	}
	e.remember(membership.Set{Draining: []membership.Drain{{Node: "n1", IP: one, Why: "spot-eviction"}}}, situation{})
	record(one)
	since := metav1.NewTime(time.Now().Add(-time.Hour))
	e.status.Down[0].Since = since
	record(one, two)
	if got := e.readRecord(); fmt.Sprint(got.Down) != "[10.0.0.1 10.0.0.2]" {
		t.Errorf("%+v", got)
	}
	e.remember(membership.Set{}, situation{}) // the reason is kept while it is Down
	down := report(one)
	want := v1alpha1.DownAddress{Address: "10.0.0.1", Node: "n1", Reason: "spot-eviction", Since: since}
	if len(down) != 1 || down[0] != want || *e.status.DownCount != 1 {
		t.Errorf("%+v, want %+v", down, want)
	}
	if written := fmt.Sprint(api.writes[len(api.writes)-1]["down"]); !strings.Contains(written, "reason:spot-eviction") {
		t.Errorf("the API has %s", written)
	}
	if text := updatingMessage(poolupdate.Intent{Alter: 2}); !strings.HasPrefix(text, "changing the admin state of 2;") {
		t.Error(text)
	}
	setCondition(&e.status, 1, v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonLevel, "")
	both := membership.Set{Draining: []membership.Drain{{Node: "n1", IP: one, Why: "out-of-service, spot-eviction"}}}
	if err := c.relevel(t.Context(), p, e, both); err != nil || e.status.Down[0].Reason != "out-of-service, spot-eviction" || e.status.Down[0].Since != since {
		t.Errorf("a second taint: %v %+v", err, e.status.Down)
	}
	if down := report(); len(down) != 0 || e.status.DownCount != nil {
		t.Errorf("%+v are left", down)
	}
}

func TestAbandonedBackendPoolTakesNothing(t *testing.T) {
	c, _, p := recorded(t)
	e := c.statuses.known(refOf(p))
	if !e.abandon() {
		t.Fatal("a pool that was never taken cannot be abandoned")
	}
	if err := c.Record(t.Context(), refOf(p), poolupdate.Intent{}); !errors.Is(err, errGone) {
		t.Errorf("recording for an abandoned BackendPool: %v", err)
	}
	c, _, p = recorded(t)
	if err := c.Record(t.Context(), refOf(p), poolupdate.Intent{}); err != nil {
		t.Fatal(err)
	}
	if c.statuses.known(refOf(p)).abandon() {
		t.Error("a pool that is taken was abandoned")
	}
}
