// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

var (
	front4, front6 = netip.MustParseAddr("20.0.0.1"), netip.MustParseAddr("2001:db8::1")
	node4, node6   = netip.MustParseAddr("10.1.0.10"), netip.MustParseAddr("fd00:1::a")
)

func formatAccessRules(rules []AccessRule) string {
	lines := make([]string, len(rules))
	for i, a := range rules {
		lines[i] = fmt.Sprintf("%s %s %s from %s to %v at %s", a.Access, a.Family, a.Protocol, strings.Join(a.Sources, ","), a.Destinations, strings.Join(a.Ports, ","))
	}
	return strings.Join(lines, "\n")
}

func withRanges(list ...string) func(*Service) { return func(s *Service) { s.SourceRanges = list } }

// Rules of cloud-provider-azure at the node addresses of the family that a Service does not have, for its own clients.
func TestRetainedRules(t *testing.T) {
	direct := withAnnotation(DisableFloatingIP, "true")
	for _, tt := range []struct {
		about   string
		service Service
		want    string
	}{
		{"without floating IP", newService(direct), "Allow IPv6 Tcp from Internet to [fd00:1::a] at 30080"},
		{"IPv6 alone", newService(direct, func(s *Service) { s.Families = []lb.Family{lb.IPv6} }), "Allow IPv4 Tcp from Internet to [10.1.0.10] at 30080"},
		{"with floating IP", newService(), ""},
		{"dual stack needs both", newService(direct, asDualStack), ""},
		{"internal", newService(direct, asInternal), ""},
		{"clients of the other family alone", newService(direct, withRanges("10.0.0.0/8")), ""},
		{"clients of both", newService(direct, withRanges("10.0.0.0/8", "2001:db8::/32")), "Allow IPv6 Tcp from 2001:db8::/32 to [fd00:1::a] at 30080"},
		{"no rules wanted", newService(direct, withAnnotation(DisableSecurityRules, "true")), ""},
	} {
		w := buildValidSpec(t, tt.service, testSettings())
		if got := formatAccessRules(w.RetainedRules([]netip.Addr{node4, node6})); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.about, got, tt.want)
		}
	}
}

// The security rules that Services need.
func TestAdmissions(t *testing.T) {
	only, alone := withRanges("10.0.0.0/8"), withAnnotation(DenyAllExcept, "true")
	direct := withAnnotation(DisableFloatingIP, "true")
	mixed := withPorts(Port{Protocol: "TCP", Port: 9000, NodePort: 30900}, Port{Protocol: "UDP", Port: 80, NodePort: 30081}, Port{Protocol: "TCP", Port: 80, NodePort: 30080})
	tests := []struct {
		about   string
		service Service
		want    string
	}{
		{"public", newService(), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80"},
		{"dual stack", newService(asDualStack), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80\nAllow IPv6 Tcp from Internet to [2001:db8::1] at 80"},
		{"ports of a protocol stand together", newService(mixed), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80,9000\nAllow IPv4 Udp from Internet to [20.0.0.1] at 80"},
		{"internal", newService(asInternal), ""},
		{"internal, for some", newService(asInternal, only), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"internal, all ports, for some", newService(asInternal, only, withAnnotation(HAPorts, "true")), "Allow IPv4 * from 10.0.0.0/8 to [20.0.0.1] at *"},
		{"without floating IP the nodes are meant", newService(direct, asDualStack), "Allow IPv4 Tcp from Internet to [10.1.0.10] at 30080\nAllow IPv6 Tcp from Internet to [fd00:1::a] at 30080"},
		{"internal, without floating IP", newService(asInternal, direct), ""},
		{"ranges go by family", newService(asDualStack, withRanges("10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.7/32 to [20.0.0.1] at 80\nAllow IPv6 Tcp from 2001:db8::/32 to [2001:db8::1] at 80"},
		{"no range of a family is nobody", newService(asDualStack, only), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"ranges within others", newService(withRanges("10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/8", "10.2.3.4/32")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"annotation", newService(withAnnotation(SourceRanges, "10.0.0.0/8 192.0.2.0/24, 198.51.100.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.0/24,198.51.100.0/24 to [20.0.0.1] at 80"},
		{"spec goes before the annotation", newService(only, withAnnotation(SourceRanges, "192.0.2.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"allowed ranges are added", newService(only, withAnnotation(AllowedIPRanges, "192.0.2.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.0/24 to [20.0.0.1] at 80"},
		{"a rule for each tag", newService(withAnnotation(AllowedServiceTags, "AzureCloud, AzureFrontDoor.Backend,azurecloud"), withAnnotation(AllowedIPRanges, "192.0.2.0/24")),
			"Allow IPv4 Tcp from 192.0.2.0/24 to [20.0.0.1] at 80\nAllow IPv4 Tcp from AzureCloud to [20.0.0.1] at 80\nAllow IPv4 Tcp from AzureFrontDoor.Backend to [20.0.0.1] at 80"},
		{"nobody else", newService(asInternal, only, alone), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80\nDeny IPv4 * from * to [20.0.0.1] at *"},
		{"nobody else, but nobody is named", newService(alone), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80"},
		{"nobody else at the nodes, but probes", newService(only, alone, direct), "Allow IPv4 Tcp from 10.0.0.0/8 to [10.1.0.10] at 30080\nAllow IPv4 Tcp from AzureLoadBalancer to [10.1.0.10] at 30080\nDeny IPv4 Tcp from * to [10.1.0.10] at 30080"},
		{"further addresses", newService(withAnnotation(AdditionalIPs, "20.0.0.9,2001:db8::9,20.0.0.9")), "Allow IPv4 Tcp from Internet to [20.0.0.1 20.0.0.9] at 80"},
		{"further addresses are never closed", newService(only, alone, withAnnotation(AdditionalIPs, "20.0.0.9")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1 20.0.0.9] at 80\nDeny IPv4 * from * to [20.0.0.1] at *"},
		{"further addresses have no part where the nodes are meant", newService(only, alone, direct, withAnnotation(AdditionalIPs, "20.0.0.9")), "Allow IPv4 Tcp from 10.0.0.0/8 to [10.1.0.10] at 30080\nAllow IPv4 Tcp from AzureLoadBalancer to [10.1.0.10] at 30080\nDeny IPv4 Tcp from * to [10.1.0.10] at 30080"},
		{"no rules wanted", newService(only, alone, withAnnotation(DisableSecurityRules, "true")), ""},
		{"no rule of the load balancer", newService(withAnnotation(ofPort(80, portNoRule), "true")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			w := buildValidSpec(t, tt.service, testSettings())
			addresses := []netip.Addr{front4, front6}[:len(w.Frontends)]
			if got := formatAccessRules(w.AccessRules(addresses, []netip.Addr{node4, node6})); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := newService(direct, mixed); !slices.Equal(buildValidSpec(t, got, testSettings()).NodePorts(), []int32{30900, 30081, 30080}) {
		t.Errorf("node ports: %v", buildValidSpec(t, got, testSettings()).NodePorts())
	}
}

// A security group written by cloud-provider-azure needs no change, in either order. Some names and the order
// remain.
func TestAnAdoptedGroupStaysAsItIs(t *testing.T) {
	text, err := os.ReadFile("testdata/adopted.json")
	if err != nil {
		t.Fatal(err)
	}
	var adopted struct {
		Nodes    []netip.Addr
		Services []struct {
			Service   Service
			Addresses []netip.Addr
		}
		Rules []lb.SecurityRule
	}
	if err := json.Unmarshal(text, &adopted); err != nil {
		t.Fatal(err)
	}
	in := SecurityInput{Observed: adopted.Rules, Managed: map[netip.Addr]bool{}}
	for _, n := range adopted.Nodes {
		in.Managed[n] = true
	}
	for _, s := range adopted.Services {
		w := buildValidSpec(t, s.Service, testSettings())
		for _, a := range s.Addresses {
			in.Managed[a] = true
		}
		in.Shares = append(in.Shares, SecurityShare{Service: s.Service.Key(), AccessRules: w.AccessRules(s.Addresses, adopted.Nodes)})
	}
	for range 2 {
		if p := BuildSecurityPlan(in); !p.IsEmpty() || len(p.Rejected) > 0 || len(p.Next) != 11 {
			t.Errorf("changes %+v, refused %v", p.Changes, p.Rejected)
		}
		slices.Reverse(in.Shares)
	}
	in.Shares = in.Shares[1:]
	if p := BuildSecurityPlan(in); p.IsEmpty() {
		t.Error("a Service less makes no difference")
	}
}
