// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// The Contested condition lasts while another controller undoes Weir's writes, with one event.
func TestAContestedPool(t *testing.T) {
	d := newFixture(t)
	fought := func(r *updater.Report) {
		withManagedAddress(r)
		r.Conflicting = []netip.Addr{netip.MustParseAddr("10.0.0.4")}
	}
	for range 2 {
		d.reportAttempt(diff.Written, fought)
	}
	d.reportAttempt(diff.Terminal, fought)
	c := meta.FindStatusCondition(d.poolStatus().Conditions, v1alpha1.ConditionContested)
	if c == nil || c.Reason != v1alpha1.ReasonUndone || !strings.Contains(c.Message, "10.0.0.4") {
		t.Errorf("condition: %+v", c)
	}
	if got := d.takeReasons(); got != "BackendPool BackendPoolContested, BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	if n := d.statuses.CountConflicting(); n != 1 {
		t.Errorf("%d are counted", n)
	}
	d.reportAttempt(diff.Unchanged, withManagedAddress)
	if c := meta.FindStatusCondition(d.poolStatus().Conditions, v1alpha1.ConditionContested); c != nil || d.statuses.CountConflicting() != 0 {
		t.Errorf("after the end: %+v", c)
	}
	d.reportAttempt(diff.Written, fought)
	if got := d.takeReasons(); !strings.Contains(got, "BackendPoolContested") {
		t.Errorf("events: %s", got)
	}
}

// A pool where another cluster has written addresses of this cluster's nodes is Contested once it was taken over, with one
// event. At takeover it is rejected.
func TestAPoolOfOverlappingClusters(t *testing.T) {
	overlap := func(r *updater.Report) { r.Overlapping = []netip.Addr{netip.MustParseAddr("10.0.0.4")} }
	d := newFixture(t)
	d.reportAttempt(diff.Rejected, func(r *updater.Report) { overlap(r); r.Fault.Code = diff.CodeOverlappingNodes })
	c := meta.FindStatusCondition(d.poolStatus().Conditions, v1alpha1.ConditionSynced)
	if c == nil || c.Reason != v1alpha1.ReasonOverlappingNodes || !strings.Contains(c.Message, "10.0.0.4. Nothing was written") {
		t.Errorf("condition: %+v", c)
	}
	if got := d.takeReasons(); got != "BackendPool OverlappingNodes" || d.statuses.CountConflicting() != 0 {
		t.Errorf("events: %s", got)
	}
	for range 2 {
		d.reportAttempt(diff.Written, func(r *updater.Report) { withManagedAddress(r); overlap(r) })
	}
	d.reportAttempt(diff.Terminal) // it was not compared
	c = meta.FindStatusCondition(d.poolStatus().Conditions, v1alpha1.ConditionContested)
	if c == nil || c.Reason != v1alpha1.ReasonOverlappingNodes || !strings.Contains(c.Message, "10.0.0.4. Weir keeps") {
		t.Errorf("condition: %+v", c)
	}
	if got := d.takeReasons(); got != "BackendPool LoadBalancerBackendPoolUpdated, BackendPool BackendPoolContested, BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	d.reportAttempt(diff.Unchanged, withManagedAddress)
	if c := meta.FindStatusCondition(d.poolStatus().Conditions, v1alpha1.ConditionContested); c != nil {
		t.Errorf("after the end: %+v", c)
	}
}
