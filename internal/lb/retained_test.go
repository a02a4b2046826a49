// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRetainedAddressTag(t *testing.T) {
	since := time.Date(2026, 11, 28, 4, 0, 0, 0, time.UTC)
	for _, r := range []RetainedAddress{
		{Address: netip.MustParseAddr("10.0.0.4"), Service: "shop/web", Since: since, Subnet: "nodes"},
		{Address: netip.MustParseAddr("fd00::4"), Service: strings.Repeat("n", 63) + "/" + strings.Repeat("s", 63), Since: since, Subnet: strings.Repeat("x", 80), Zones: []string{"1", "2", "3"}},
	} {
		name, value := r.TagName(), r.TagValue()
		if got, ok := ParseRetainedAddress(strings.ToUpper(name), value); !ok || !reflect.DeepEqual(got, r) || !ValidTag(name, value) {
			t.Errorf("%s=%s: %+v", name, value, got)
		}
	}
	for _, name := range []string{"weir-retained-frontend", "weir-retained-namespace", "weir-retained-since", "weir-retained-", "x"} {
		if r, ok := ParseRetainedAddress(name, "2026-11-28T04:00:00Z shop/web nodes"); ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r, ok := ParseRetainedAddress("weir-retained-10.0.0.4", "x"); !ok || r.Service != "" || !r.Since.IsZero() {
		t.Errorf("%+v", r)
	}
	public := Frontend{PublicIP: "/ip", PrivateIP: netip.MustParseAddr("10.0.0.4")}
	if _, ok := (LoadBalancer{Tags: map[string]string{"weir-retained-10.0.0.4": "x"}}).RetainedAt(public); ok {
		t.Error("a public frontend")
	}
}
