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
	"weir.dev/weir/internal/nsg"
)

var (
	front4, front6 = netip.MustParseAddr("20.0.0.1"), netip.MustParseAddr("2001:db8::1")
	node4, node6   = netip.MustParseAddr("10.1.0.10"), netip.MustParseAddr("fd00:1::a")
)

func spellAdmissions(all []nsg.Admission) string {
	lines := make([]string, len(all))
	for i, a := range all {
		lines[i] = fmt.Sprintf("%s %s %s from %s to %v at %s", a.Access, a.Family, a.Protocol, strings.Join(a.Sources, ","), a.Destinations, strings.Join(a.Ports, ","))
	}
	return strings.Join(lines, "\n")
}

func ranges(list ...string) func(*Service) { return func(s *Service) { s.SourceRanges = list } }

// The security rules that Services need.
func TestAdmissions(t *testing.T) {
	only, alone := ranges("10.0.0.0/8"), with(DenyAllExcept, "true")
	direct := with(DisableFloatingIP, "true")
	mixed := ports(Port{Protocol: "TCP", Port: 9000, NodePort: 30900}, Port{Protocol: "UDP", Port: 80, NodePort: 30081}, Port{Protocol: "TCP", Port: 80, NodePort: 30080})
	tests := []struct {
		about   string
		service Service
		want    string
	}{
		{"public", web(), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80"},
		{"dual stack", web(dual), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80\nAllow IPv6 Tcp from Internet to [2001:db8::1] at 80"},
		{"ports of a protocol stand together", web(mixed), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80,9000\nAllow IPv4 Udp from Internet to [20.0.0.1] at 80"},
		{"internal", web(internal), ""},
		{"internal, for some", web(internal, only), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"internal, all ports, for some", web(internal, only, with(HAPorts, "true")), "Allow IPv4 * from 10.0.0.0/8 to [20.0.0.1] at *"},
		{"without floating IP the nodes are meant", web(direct, dual), "Allow IPv4 Tcp from Internet to [10.1.0.10] at 30080\nAllow IPv6 Tcp from Internet to [fd00:1::a] at 30080"},
		{"internal, without floating IP", web(internal, direct), ""},
		{"ranges go by family", web(dual, ranges("10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.7/32 to [20.0.0.1] at 80\nAllow IPv6 Tcp from 2001:db8::/32 to [2001:db8::1] at 80"},
		{"no range of a family is nobody", web(dual, only), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"ranges within others", web(ranges("10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/8", "10.2.3.4/32")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"annotation", web(with(SourceRanges, "10.0.0.0/8 192.0.2.0/24, 198.51.100.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.0/24,198.51.100.0/24 to [20.0.0.1] at 80"},
		{"spec goes before the annotation", web(only, with(SourceRanges, "192.0.2.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80"},
		{"allowed ranges are added", web(only, with(AllowedIPRanges, "192.0.2.0/24")), "Allow IPv4 Tcp from 10.0.0.0/8,192.0.2.0/24 to [20.0.0.1] at 80"},
		{"a rule for each tag", web(with(AllowedServiceTags, "AzureCloud, AzureFrontDoor.Backend,azurecloud"), with(AllowedIPRanges, "192.0.2.0/24")),
			"Allow IPv4 Tcp from 192.0.2.0/24 to [20.0.0.1] at 80\nAllow IPv4 Tcp from AzureCloud to [20.0.0.1] at 80\nAllow IPv4 Tcp from AzureFrontDoor.Backend to [20.0.0.1] at 80"},
		{"nobody else", web(internal, only, alone), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1] at 80\nDeny IPv4 * from * to [20.0.0.1] at *"},
		{"nobody else, but nobody is named", web(alone), "Allow IPv4 Tcp from Internet to [20.0.0.1] at 80"},
		{"nobody else at the nodes, but probes", web(only, alone, direct), "Allow IPv4 Tcp from 10.0.0.0/8 to [10.1.0.10] at 30080\nAllow IPv4 Tcp from AzureLoadBalancer to [10.1.0.10] at 30080\nDeny IPv4 Tcp from * to [10.1.0.10] at 30080"},
		{"further addresses", web(with(AdditionalIPs, "20.0.0.9,2001:db8::9,20.0.0.9")), "Allow IPv4 Tcp from Internet to [20.0.0.1 20.0.0.9] at 80"},
		{"further addresses are never closed", web(only, alone, with(AdditionalIPs, "20.0.0.9")), "Allow IPv4 Tcp from 10.0.0.0/8 to [20.0.0.1 20.0.0.9] at 80\nDeny IPv4 * from * to [20.0.0.1] at *"},
		{"further addresses have no part where the nodes are meant", web(only, alone, direct, with(AdditionalIPs, "20.0.0.9")), "Allow IPv4 Tcp from 10.0.0.0/8 to [10.1.0.10] at 30080\nAllow IPv4 Tcp from AzureLoadBalancer to [10.1.0.10] at 30080\nDeny IPv4 Tcp from * to [10.1.0.10] at 30080"},
		{"no rules wanted", web(only, alone, with(DisableSecurityRules, "true")), ""},
		{"no rule of the load balancer", web(with(ofPort(80, portNoRule), "true")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			w := desired(t, tt.service, settings())
			addresses := []netip.Addr{front4, front6}[:len(w.Frontends)]
			if got := spellAdmissions(w.Admissions(addresses, []netip.Addr{node4, node6})); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := web(direct, mixed); !slices.Equal(desired(t, got, settings()).NodePorts(), []int32{30900, 30081, 30080}) {
		t.Errorf("node ports: %v", desired(t, got, settings()).NodePorts())
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
	in := nsg.Input{Observed: adopted.Rules, Ours: map[netip.Addr]bool{}}
	for _, n := range adopted.Nodes {
		in.Ours[n] = true
	}
	for _, s := range adopted.Services {
		w := desired(t, s.Service, settings())
		for _, a := range s.Addresses {
			in.Ours[a] = true
		}
		in.Shares = append(in.Shares, nsg.Share{Service: s.Service.Key(), Admissions: w.Admissions(s.Addresses, adopted.Nodes)})
	}
	for range 2 {
		if p := nsg.Merge(in); !p.Empty() || len(p.Refused) > 0 || len(p.Next) != 11 {
			t.Errorf("changes %+v, refused %v", p.Changes, p.Refused)
		}
		slices.Reverse(in.Shares)
	}
	in.Shares = in.Shares[1:]
	if p := nsg.Merge(in); p.Empty() {
		t.Error("a Service less makes no difference")
	}
}
