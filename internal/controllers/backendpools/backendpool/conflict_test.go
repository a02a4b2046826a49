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
