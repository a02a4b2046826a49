// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// The Contested condition lasts while another controller undoes Weir's writes, with one event.
func TestAContestedPool(t *testing.T) {
	d := atDesk(t)
	fought := func(r *poolupdate.Report) {
		addressesOfOurs(r)
		r.Contested = []netip.Addr{netip.MustParseAddr("10.0.0.4")}
	}
	for range 2 {
		d.reports(poolwrite.Written, fought)
	}
	d.reports(poolwrite.Terminal, fought)
	c := meta.FindStatusCondition(d.status().Conditions, v1alpha1.ConditionContested)
	if c == nil || c.Reason != v1alpha1.ReasonUndone || !strings.Contains(c.Message, "10.0.0.4") {
		t.Errorf("condition: %+v", c)
	}
	if got := d.said(); got != "BackendPool BackendPoolContested, BackendPool Failed" {
		t.Errorf("events: %s", got)
	}
	if n := d.statuses.Contested(); n != 1 {
		t.Errorf("%d are counted", n)
	}
	d.reports(poolwrite.Unchanged, addressesOfOurs)
	if c := meta.FindStatusCondition(d.status().Conditions, v1alpha1.ConditionContested); c != nil || d.statuses.Contested() != 0 {
		t.Errorf("after the end: %+v", c)
	}
	d.reports(poolwrite.Written, fought)
	if got := d.said(); !strings.Contains(got, "BackendPoolContested") {
		t.Errorf("events: %s", got)
	}
}
