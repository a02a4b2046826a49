// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Retained destinations remain where a rule has them. They are never added, and are removed with the Service, or when
// its clients change.
func TestRetainedRulesAreNeverAdded(t *testing.T) {
	node := netip.MustParseAddr("fd00:1::a")
	there := newManagedRule("allow_IPv6_n", 501, "fd00:1::a", "fd00:1::b")
	there.DestinationPorts = []string{"30080"}
	retained := AccessRule{Access: lb.Allow, Family: lb.IPv6, Protocol: "Tcp", Sources: []string{"Internet"}, Ports: []string{"30080"}, Destinations: []netip.Addr{node}}
	narrower := retained
	narrower.Sources = []string{"AzureFrontDoor.Backend"}
	for _, tt := range []struct {
		about    string
		observed []lb.SecurityRule
		shares   []SecurityShare
		want     string
	}{
		{"a rule for two nodes, one of which has left", []lb.SecurityRule{there}, []SecurityShare{{Service: "a", Retained: []AccessRule{retained}}}, "501 Allow Tcp Internet to fd00:1::a:30080"},
		{"no rule", nil, []SecurityShare{{Service: "a", Retained: []AccessRule{retained}}}, ""},
		{"other clients", []lb.SecurityRule{there}, []SecurityShare{{Service: "a", Retained: []AccessRule{narrower}}}, ""},
		{"no Service", []lb.SecurityRule{there}, nil, ""},
	} {
		in := SecurityInput{Observed: tt.observed, Shares: tt.shares, Managed: map[netip.Addr]bool{node: true, netip.MustParseAddr("fd00:1::b"): true}}
		p := BuildSecurityPlan(in)
		if got := formatRules(p.Next); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
		in.Observed = p.Next
		if second := BuildSecurityPlan(in); !second.IsEmpty() {
			t.Errorf("%s: a second plan has %v", tt.about, second.Changes)
		}
	}
}
