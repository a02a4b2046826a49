// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func newShare(service string, at ...int) SecurityShare {
	a := AccessRule{Access: lb.Allow, Family: lb.IPv4, Protocol: "Tcp", Sources: []string{"Internet"}, Ports: []string{"80"}}
	s := SecurityShare{Service: service}
	for _, n := range at {
		a.Destinations = append(a.Destinations, fourth(n))
	}
	if len(at) > 0 {
		s.AccessRules, s.Places = []AccessRule{a}, []SecurityPlace{{Addresses: a.Destinations}}
	}
	return s
}

// newManagedRule returns a managed rule as written by cloud-provider-azure.
func newManagedRule(name string, priority int32, destinations ...string) lb.SecurityRule {
	return lb.SecurityRule{
		Name: SecurityRulePrefix + name, Priority: priority, Direction: lb.Inbound, Access: lb.Allow, Protocol: "Tcp", Sources: []string{"Internet"},
		SourcePorts: []string{lb.Any}, Destinations: destinations, DestinationPorts: []string{"80"},
	}
}

func addressSet(at ...int) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, n := range at {
		addresses[fourth(n)] = true
	}
	return addresses
}

func formatRules(rules []lb.SecurityRule) string {
	var lines []string
	for _, r := range rules {
		lines = append(lines, fmt.Sprintf("%d %s %s %s to %s:%s", r.Priority, r.Access, r.Protocol,
			strings.Join(r.Sources, ","), strings.Join(r.Destinations, ","), strings.Join(r.DestinationPorts, ",")))
	}
	return strings.Join(lines, "\n")
}

func TestMerge(t *testing.T) {
	ranges := newShare("a", 1)
	ranges.AccessRules[0].Sources = []string{"192.0.2.7/32"}
	deny := newShare("a", 1)
	deny.AccessRules = append(deny.AccessRules, AccessRule{
		Access: lb.Deny, Family: lb.IPv4, Protocol: lb.Any, Sources: []string{lb.Any}, Destinations: []netip.Addr{fourth(1)}, Ports: []string{lb.Any},
	})
	hidden := newManagedRule("allow_IPv4_h", 500, "20.0.0.1")
	hidden.Sources, hidden.DestinationPorts = []string{"192.0.2.7"}, []string{"80-80"}
	node := newManagedRule("allow_IPv4_n", 500, "20.0.0.1")
	node.DestinationPorts = []string{"30000-30100"}
	unknown := func(p SecurityPlace) SecurityShare {
		p.Addresses = []netip.Addr{fourth(1)}
		return SecurityShare{Service: "b", Fixed: true, Places: []SecurityPlace{p}}
	}
	grouped := newManagedRule("allow_IPv4_g", 500, "20.0.0.1")
	grouped.Grouped = true
	out, odd := newManagedRule("x", 500, "20.0.0.9"), newManagedRule("odd", 500, "20.0.0.1")
	out.Name, out.Direction, odd.SourcePorts = "out", lb.Outbound, []string{"53"}
	tests := []struct {
		name     string
		observed []lb.SecurityRule
		shares   []SecurityShare
		own      map[netip.Addr]bool
		want     string
	}{
		{"Services with one meaning share a rule", nil, []SecurityShare{newShare("a", 2), newShare("b", 1, 3)}, addressSet(1, 2, 3), "500 Allow Tcp Internet to 20.0.0.2,20.0.0.1,20.0.0.3:80"},
		{"a rule is known by what it means", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 640, "20.0.0.9", "20.0.0.1/32")}, []SecurityShare{newShare("a", 1), newShare("b", 2)}, addressSet(1, 2), "640 Allow Tcp Internet to 20.0.0.9,20.0.0.1/32,20.0.0.2:80"},
		{"however that is spelled", []lb.SecurityRule{hidden}, []SecurityShare{ranges}, addressSet(1), "500 Allow Tcp 192.0.2.7 to 20.0.0.1:80-80"},
		{"a destination that nobody asks for goes, and those of others stay", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1", "20.0.0.9", "10.0.0.0/8")}, nil, addressSet(1), "500 Allow Tcp Internet to 20.0.0.9,10.0.0.0/8:80"},
		{"a rule without destinations goes", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1")}, nil, addressSet(1), ""},
		{"a rule that changes hands keeps its place", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 700, "20.0.0.1")}, []SecurityShare{newShare("b", 2)}, addressSet(1, 2), "700 Allow Tcp Internet to 20.0.0.2:80"},
		{"two rules of one meaning", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.3"), newManagedRule("allow_IPv4_y", 501, "20.0.0.1")}, []SecurityShare{newShare("a", 1)}, addressSet(1, 3), "501 Allow Tcp Internet to 20.0.0.1:80"},
		{"the same destination in both", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1"), newManagedRule("allow_IPv4_y", 501, "20.0.0.1", "20.0.0.9")}, []SecurityShare{newShare("a", 1)}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:80\n501 Allow Tcp Internet to 20.0.0.9:80"},
		{"who is let in goes first, who is kept out last", nil, []SecurityShare{deny}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:80\n4096 Deny * * to 20.0.0.1:*"},
		{"a Service that is not understood keeps all it has", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1", "20.0.0.2")}, []SecurityShare{unknown(SecurityPlace{})}, addressSet(1, 2), "500 Allow Tcp Internet to 20.0.0.1:80"},
		{"at its node ports", []lb.SecurityRule{node}, []SecurityShare{unknown(SecurityPlace{Ports: []int32{30080}})}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:30000-30100"},
		{"and at no others", []lb.SecurityRule{node}, []SecurityShare{unknown(SecurityPlace{Ports: []int32{30101}})}, addressSet(1), ""},
		{"what its neighbours want is added", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1")}, []SecurityShare{unknown(SecurityPlace{}), ranges}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:80\n501 Allow Tcp 192.0.2.7/32 to 20.0.0.1:80"},
		{"priorities of the other direction are free", []lb.SecurityRule{out}, []SecurityShare{newShare("a", 1)}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.9:80\n500 Allow Tcp Internet to 20.0.0.1:80"},
		{"a rule that says more is another owner's", []lb.SecurityRule{odd}, []SecurityShare{newShare("a", 1)}, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:80\n501 Allow Tcp Internet to 20.0.0.1:80"},
		{"application security groups are nobody's address", []lb.SecurityRule{grouped}, nil, addressSet(1), "500 Allow Tcp Internet to 20.0.0.1:80"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := formatRules(tt.observed)
			p := BuildSecurityPlan(SecurityInput{Observed: tt.observed, Shares: tt.shares, Managed: tt.own})
			if got := formatRules(p.Next); got != tt.want || len(p.Rejected) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nrefused %v", got, tt.want, p.Rejected)
			}
			if p.IsEmpty() != (before == tt.want) || formatRules(tt.observed) != before {
				t.Errorf("changes %+v; what was observed is now %s", p.Changes, formatRules(tt.observed))
			}
		})
	}
}

// Names of new rules are derived from sources and content, and are unique ignoring case.
func TestNames(t *testing.T) {
	share := newShare("a", 1)
	name := BuildSecurityPlan(SecurityInput{Shares: []SecurityShare{share}, Managed: addressSet(1)}).Next[0].Name
	if !strings.HasPrefix(name, "k8s-azure-lb_allow_IPv4_") || len(name) != len("k8s-azure-lb_allow_IPv4_")+32 {
		t.Errorf("name %s", name)
	}
	taken := newManagedRule("x", 100)
	taken.Name, taken.Direction = strings.ToUpper(name), lb.Outbound
	if got := BuildSecurityPlan(SecurityInput{Observed: []lb.SecurityRule{taken}, Shares: []SecurityShare{share}, Managed: addressSet(1)}).Next[1].Name; got != name+"_2" {
		t.Errorf("beside a rule of that name: %s", got)
	}
	share.AccessRules[0] = AccessRule{Access: lb.Deny, Family: lb.IPv6, Protocol: lb.Any, Sources: []string{lb.Any}, Destinations: []netip.Addr{sixth(1)}, Ports: []string{lb.Any}}
	if got := BuildSecurityPlan(SecurityInput{Shares: []SecurityShare{share}, Managed: addressSet(1)}).Next[0].Name; got != "k8s-azure-lb_deny-all_IPv6" {
		t.Errorf("of what keeps all out: %s", got)
	}
}

func manyRanges(service string, at, n int) SecurityShare {
	s := newShare(service, at)
	s.AccessRules[0].Sources = nil
	for i := range n {
		s.AccessRules[0].Sources = append(s.AccessRules[0].Sources, fmt.Sprintf("10.%d.%d.0/24", i/250, i%250))
	}
	return s
}

// A Service that does not fit is rejected, keeps its rules and does not affect others.
func TestServicesBeyondABoundAreRejected(t *testing.T) {
	full := func(n int) []lb.SecurityRule {
		var rules []lb.SecurityRule
		for i := range n {
			r := newManagedRule("x", int32(1000+i), "20.9.9.9") //nolint:gosec // small
			r.Name, r.Sources = fmt.Sprint("mine-", i), []string{"Internet"}
			rules = append(rules, r)
		}
		return rules
	}
	tests := []struct {
		name     string
		observed []lb.SecurityRule
		shares   []SecurityShare
		refused  []string
		wantText string
	}{
		{"the last rule", full(999), []SecurityShare{newShare("a", 1)}, nil, ""},
		{"one rule too many", full(1000), []SecurityShare{newShare("a", 1)}, []string{"a"}, "1001 rules, and Azure allows 1000"},
		{"the last range", nil, []SecurityShare{manyRanges("a", 1, 4000)}, nil, ""},
		{"one range too many, and a neighbour", nil, []SecurityShare{manyRanges("a", 1, 4001), newShare("b", 2)}, []string{"a"}, "4001 addresses and ranges as sources, and Azure allows 4000"},
		{"the first of two has the room", nil, []SecurityShare{manyRanges("a", 1, 3000), manyRanges("b", 2, 2000), newShare("c", 3)}, []string{"b"}, "5000 addresses"},
		{"who has it keeps it", BuildSecurityPlan(SecurityInput{Shares: []SecurityShare{manyRanges("b", 2, 2000)}, Managed: addressSet(2)}).Next, []SecurityShare{manyRanges("a", 1, 3000), manyRanges("b", 2, 2000)}, []string{"a"}, "5000 addresses"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := BuildSecurityPlan(SecurityInput{Observed: tt.observed, Shares: tt.shares, Managed: addressSet(1, 2, 3)})
			var got []string
			for name, reason := range p.Rejected {
				got = append(got, name)
				if !errors.Is(reason, ErrSecurityGroupFull) || !strings.Contains(reason.Error(), tt.wantText) {
					t.Errorf("%s: %v", name, reason)
				}
			}
			if !slices.Equal(got, tt.refused) {
				t.Errorf("refused %v, want %v", p.Rejected, tt.refused)
			}
		})
	}
	t.Run("what fitted before stays", func(t *testing.T) {
		before := BuildSecurityPlan(SecurityInput{Shares: []SecurityShare{newShare("a", 1)}, Managed: addressSet(1)}).Next
		p := BuildSecurityPlan(SecurityInput{Observed: before, Shares: []SecurityShare{manyRanges("a", 1, 5000)}, Managed: addressSet(1)})
		if !p.IsEmpty() || p.Rejected["a"] == nil {
			t.Errorf("changes %+v, refused %v", p.Changes, p.Rejected)
		}
	})
}
