// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// fixture is a Cluster with one BackendPool; the test calls its reconcilers.
type fixture struct {
	*testing.T
	*cluster
	api     *statusAPI
	workers *queued
	p       *v1alpha1.BackendPool
}

// newFixture returns a desk with a BackendPool of an active Service, after edit.
func newFixture(t *testing.T, edit ...func(*v1alpha1.BackendPool)) *fixture {
	t.Helper()
	c, api, p := newRecordedPool(t)
	d := &fixture{T: t, cluster: c, api: api, workers: &queued{}, p: p}
	c.Workers = d.workers
	d.updatePool(edit...)
	return d
}

func (fx *fixture) updatePool(edit ...func(*v1alpha1.BackendPool)) {
	fx.Helper()
	p := fx.p.DeepCopy()
	for _, f := range edit {
		f(p)
	}
	fx.p = p
	fx.world.addObjects(p)
}

func (fx *fixture) deleteService() {
	fx.Helper()
	fx.world.deleteService(serviceOfType(corev1.ServiceTypeLoadBalancer))
}

// reconcileNow returns the requeue delay; 0 for never.
func (fx *fixture) reconcileNow() time.Duration {
	fx.Helper()
	result, err := fx.reconcilePool(fx.T, fx.p)
	if err != nil {
		fx.Fatal(err)
	}
	return result.After
}

func (fx *fixture) poolStatus() *v1alpha1.BackendPoolStatus {
	return &fx.statuses.GetEntry(RefOf(fx.p)).status
}

func (fx *fixture) findCondition(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(fx.poolStatus().Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (fx *fixture) assertSynced(reason, part string) {
	fx.Helper()
	if c := fx.findCondition(v1alpha1.ConditionSynced); c.Reason != reason || !strings.Contains(c.Message, part) {
		fx.Errorf("says %s %q, want %s and %q", c.Reason, c.Message, reason, part)
	}
}

func (fx *fixture) assertParked(want bool) {
	fx.Helper()
	c := fx.findCondition(v1alpha1.ConditionParked)
	if got := c.Status == metav1.ConditionTrue; got != want || (fx.poolStatus().NextEligibleAt != nil) != want {
		fx.Errorf("parked %v until %v, %s %q; want %v", got, fx.poolStatus().NextEligibleAt, c.Reason, c.Message, want)
	}
}

func (fx *fixture) reportAttempt(o diff.Outcome, edit ...func(*updater.Report)) {
	fx.Helper()
	r := updater.Report{Ref: RefOf(fx.p), Pool: fx.ResolveBinding(fx.p, time.Now()).Pool, Outcome: o, At: time.Unix(1000, 0)}
	r.InSync = o == diff.Written || o == diff.Unchanged
	if !r.InSync {
		r.Observed = -1
		r.Fault = &armerror.Fault{Class: armerror.Terminal, Code: "Bad", Err: errors.New("no way")}
	}
	for _, f := range edit {
		f(&r)
	}
	fx.Report(fx.Context(), r)
}

// takeReasons returns the reasons of the pending events.
func (fx *fixture) takeReasons() string {
	var reasons []string
	for e, waits := fx.world.nextEvent(); waits; e, waits = fx.world.nextEvent() {
		reasons = append(reasons, e.about+" "+e.Reason)
	}
	return strings.Join(reasons, ", ")
}

func (fx *fixture) reportWait(edit ...func(*updater.Waiting)) {
	w := updater.Waiting{
		Ref: RefOf(fx.p), Pool: fx.ResolveBinding(fx.p, time.Now()).Pool, Cause: updater.CauseGate,
		Until: time.Now().Add(time.Minute), Message: "writes are closed",
	}
	for _, f := range edit {
		f(&w)
	}
	fx.ReportWait(w)
}

var ours = []netip.Addr{netip.MustParseAddr("10.0.0.1")}

func withManagedAddress(r *updater.Report) { r.Written, r.Desired, r.Observed = ours, 1, 1 }

func withRequeue(r *updater.Report) { r.WillRetry = true }
