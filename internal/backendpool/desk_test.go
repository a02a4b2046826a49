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
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// desk is a Cluster with one BackendPool; the test calls its reconcilers.
type desk struct {
	*testing.T
	*cluster
	api   *statusAPI
	lanes *queued
	p     *v1alpha1.BackendPool
}

// atDesk returns a desk with a BackendPool of an active Service, after edit.
func atDesk(t *testing.T, edit ...func(*v1alpha1.BackendPool)) *desk {
	t.Helper()
	c, api, p := recorded(t)
	d := &desk{T: t, cluster: c, api: api, lanes: &queued{}, p: p}
	c.Lanes = d.lanes
	d.becomes(edit...)
	return d
}

func (d *desk) becomes(edit ...func(*v1alpha1.BackendPool)) {
	d.Helper()
	p := d.p.DeepCopy()
	for _, f := range edit {
		f(p)
	}
	d.p = p
	d.world.add(p)
}

func (d *desk) serviceGoes() {
	d.Helper()
	d.world.deletes(serviceOfType(corev1.ServiceTypeLoadBalancer))
}

// reconciles returns the requeue delay; 0 for never.
func (d *desk) reconciles() time.Duration {
	d.Helper()
	result, err := d.reconciled(d.T, d.p)
	if err != nil {
		d.Fatal(err)
	}
	return result.After
}

func (d *desk) status() *v1alpha1.BackendPoolStatus { return &d.statuses.Known(RefOf(d.p)).status }

func (d *desk) condition(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(d.status().Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (d *desk) says(reason, part string) {
	d.Helper()
	if c := d.condition(v1alpha1.ConditionSynced); c.Reason != reason || !strings.Contains(c.Message, part) {
		d.Errorf("says %s %q, want %s and %q", c.Reason, c.Message, reason, part)
	}
}

func (d *desk) parked(want bool) {
	d.Helper()
	c := d.condition(v1alpha1.ConditionParked)
	if got := c.Status == metav1.ConditionTrue; got != want || (d.status().NextEligibleAt != nil) != want {
		d.Errorf("parked %v until %v, %s %q; want %v", got, d.status().NextEligibleAt, c.Reason, c.Message, want)
	}
}

func (d *desk) reports(o poolwrite.Outcome, edit ...func(*poolupdate.Report)) {
	d.Helper()
	r := poolupdate.Report{Ref: RefOf(d.p), Pool: d.Entitlement(d.p, time.Now()).Pool, Outcome: o, At: time.Unix(1000, 0)}
	r.Settled = o == poolwrite.Written || o == poolwrite.Unchanged
	if !r.Settled {
		r.Observed = -1
		r.Fault = &fault.Fault{Class: fault.Terminal, Code: "Bad", Err: errors.New("no way")}
	}
	for _, f := range edit {
		f(&r)
	}
	d.Report(d.Context(), r)
}

// said returns the reasons of the pending events.
func (d *desk) said() string {
	var reasons []string
	for e, waits := d.world.next(); waits; e, waits = d.world.next() {
		reasons = append(reasons, e.about+" "+e.Reason)
	}
	return strings.Join(reasons, ", ")
}

func (d *desk) waits(edit ...func(*poolupdate.Waiting)) {
	w := poolupdate.Waiting{
		Ref: RefOf(d.p), Pool: d.Entitlement(d.p, time.Now()).Pool, Cause: poolupdate.CauseGate,
		Until: time.Now().Add(time.Minute), Why: "writes are closed",
	}
	for _, f := range edit {
		f(&w)
	}
	d.Wait(w)
}

var ours = []netip.Addr{netip.MustParseAddr("10.0.0.1")}

func addressesOfOurs(r *poolupdate.Report) { r.Written, r.Desired, r.Observed = ours, 1, 1 }

func requeued(r *poolupdate.Report) { r.Requeued = true }
