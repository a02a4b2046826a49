// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// findings returns those with the given reasons.
func findings(seen phase.Snapshot, services []phase.Service, t phase.Options, reasons ...string) (found []phase.Finding) {
	for _, f := range phase.RunPreflight(phase.BuildJournal(phase.Journal{}, seen, services, "eastus"), seen, services, t) {
		if slices.Contains(reasons, f.Reason) {
			found = append(found, f)
		}
	}
	return found
}

// A machine that becomes unreachable is named, unless it or its subnet has a security group, or no
// address is public.
func TestMachinesWithoutASecurityGroup(t *testing.T) {
	guarded := map[string]phase.Subnet{strings.ToLower(network): {SecurityGroup: "/nodes"}}
	open := map[string]phase.Subnet{strings.ToLower(network): {}}
	bare := func(s *phase.Snapshot) {
		s.Subnets = open
		for at := range s.Interfaces {
			s.Interfaces[at].SecurityGroup = ""
		}
		s.ScaleSets[0].Interfaces = slices.Clone(s.ScaleSets[0].Interfaces)
		s.ScaleSets[0].Interfaces[0].SecurityGroup = ""
	}
	for _, tt := range []struct {
		about    string
		changed  func(*phase.Snapshot)
		asks     int // subnet reads
		reason   string
		wantText []string
	}{
		{"each machine has one", func(*phase.Snapshot) {}, 0, "", nil},
		{"the subnet has one", func(s *phase.Snapshot) { bare(s); s.Subnets = guarded }, 1, "", nil},
		{"nothing has one", bare, 1, phase.ReasonNoSecurityGroup, []string{"on network interface n1, scale set blue, nor on their subnets", "put nodes, which azure.json names, on the machines, or on " + network}},
		{"a scale set has none", func(s *phase.Snapshot) { bare(s); s.Interfaces[0].SecurityGroup = "/own" }, 1, phase.ReasonNoSecurityGroup, []string{"on scale set blue, nor"}},
		{"a scale set has one since an instance was made", func(s *phase.Snapshot) {
			s.Subnets = open
			old := s.ScaleSets[0].Interfaces[0]
			old.SecurityGroup = ""
			s.ScaleSets[0].Instances = []lb.Instance{{ID: "7", Interfaces: []lb.InterfaceConfiguration{old}}, {ID: "8", Interfaces: s.ScaleSets[0].Interfaces}}
		}, 1, phase.ReasonNoSecurityGroup, []string{"instance 7 of scale set blue, nor"}},
		{"a machine of many", func(s *phase.Snapshot) {
			bare(s)
			for n := range 30 {
				more := s.Interfaces[0]
				more.ID.Name = fmt.Sprintf("n%02d", n)
				s.Interfaces = append(s.Interfaces, more)
			}
		}, 1, phase.ReasonNoSecurityGroup, []string{"network interface n18 and 12 more, nor"}},
		{"nobody may read the subnet", func(s *phase.Snapshot) {
			bare(s)
			s.Subnets = map[string]phase.Subnet{strings.ToLower(network): {Hidden: true}}
		}, 1, phase.ReasonPermissionMissing, []string{"lacks Microsoft.Network/virtualNetworks/subnets/read on " + network}},
		{"Azure has no such subnet", func(s *phase.Snapshot) {
			bare(s)
			s.Subnets = map[string]phase.Subnet{strings.ToLower(network): {Missing: true}}
		}, 1, phase.ReasonNoSecurityGroup, []string{"does not show the subnet of network interface n1, scale set blue: "}},
		{"no subnet is shown", func(s *phase.Snapshot) {
			bare(s)
			for _, i := range []*lb.InterfaceConfiguration{&s.Interfaces[0].InterfaceConfiguration, &s.ScaleSets[0].Interfaces[0]} {
				i.IPConfigurations = slices.Clone(i.IPConfigurations)
				i.IPConfigurations[0].Subnet = ""
			}
		}, 0, phase.ReasonNoSecurityGroup, []string{"does not show the subnet of network interface n1, scale set blue: "}},
		{"nothing is public", func(s *phase.Snapshot) {
			bare(s)
			s.LoadBalancers[0].Frontends[0] = lb.Frontend{Name: "a1", Subnet: network, PrivateIP: netip.MustParseAddr("10.0.0.9")}
		}, 0, "", nil},
		{"the machine has left", func(s *phase.Snapshot) {
			bare(s)
			s.Interfaces, s.ScaleSets = nil, nil
		}, 0, "", nil},
	} {
		seen, services := small()
		tt.changed(&seen)
		if asks := phase.SubnetsWithoutGroup(phase.BuildJournal(phase.Journal{}, seen, services, "eastus"), seen); len(asks) != tt.asks || tt.asks > 0 && asks[0] != network {
			t.Errorf("%s: asks for subnets %q", tt.about, asks)
		}
		found := findings(seen, services, terms(), phase.ReasonNoSecurityGroup, phase.ReasonPermissionMissing)
		if len(found) != min(len(tt.wantText), 1) {
			t.Fatalf("%s: %+v", tt.about, found)
		}
		for _, message := range tt.wantText {
			if f := found[0]; f.IsBlocker == strings.Contains(message, "does not show") || f.Reason != tt.reason || !strings.Contains(f.Message, message) {
				t.Errorf("%s: %+v, want %q", tt.about, f, message)
			}
		}
	}
}

// If Weir does not manage the security group, the finding names what to add there.
func TestASecurityGroupThatWeirDoesNotWrite(t *testing.T) {
	seen, services := small()
	seen.Interfaces[0].SecurityGroup, seen.Subnets = "", map[string]phase.Subnet{strings.ToLower(network): {}}
	of := terms()
	of.SecurityGroup = ""
	found := findings(seen, services, of, phase.ReasonNoSecurityGroup)
	if len(found) != 1 || !strings.Contains(found[0].Message, "put one that admits what shall reach the Services on the machines, or on "+network) {
		t.Errorf("%+v", found)
	}
}
