// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// Exceeded limits are reported before anything changes.
func TestLimits(t *testing.T) {
	used := func(name string, used, limit int) func(*phase.Snapshot, *[]phase.Service) {
		return func(s *phase.Snapshot, _ *[]phase.Service) {
			s.Usages = []phase.Usage{{Subscription: "S", Name: name, Used: used, Limit: limit}}
		}
	}
	rules := func(n, own int, on string) func(*phase.Snapshot, *[]phase.Service) {
		return func(_ *phase.Snapshot, limits *[]phase.Service) {
			(*limits)[0].Rules = 2
			*limits = append(*limits, phase.Service{Name: "ns/more", Owner: "a2", LoadBalancer: balancerID(on), Addresses: (*limits)[0].Addresses, Rules: n, DedicatedRules: own})
		}
	}
	for _, tt := range []struct {
		about    string
		changed  func(*phase.Snapshot, *[]phase.Service)
		stops    bool
		wantText string
	}{
		{"nothing is known", func(*phase.Snapshot, *[]phase.Service) {}, false, ""},
		{"one Standard public IP is left", used("StandardSkuPublicIpAddresses", 9, 10), false, ""},
		{"no Standard public IP is left", used("StandardSkuPublicIpAddresses", 10, 10), true, "10 of 10 StandardSkuPublicIpAddresses in use in the region, and 1 more are needed"},
		{"none of the family", used("IPv4StandardSkuPublicIpAddresses", 0, 0), true, "0 of 0 IPv4StandardSkuPublicIpAddresses"},
		{"none of the other family", used("IPv6StandardSkuPublicIpAddresses", 10, 10), false, ""},
		{"no public IP at all", used("PublicIPAddresses", 10, 10), false, ""},
		{"no Static one", used("StaticPublicIPAddresses", 10, 10), false, "10 of 10 StaticPublicIPAddresses"},
		{"no Static one, which it is", func(s *phase.Snapshot, limits *[]phase.Service) {
			s.PublicIPs[0].Static = true
			used("StaticPublicIPAddresses", 10, 10)(s, limits)
		}, false, ""},
		{"no Standard load balancer is left", used("StandardSkuLoadBalancers", 1000, 1000), true, "1000 of 1000 StandardSkuLoadBalancers"},
		{"no load balancer is left", used("LoadBalancers", 1000, 1000), false, ""},
		{"no load balancer is left, and it is gone", func(s *phase.Snapshot, limits *[]phase.Service) {
			s.LoadBalancers, s.PublicIPs[0].UsedBy = nil, ""
			used("LoadBalancers", 1000, 1000)(s, limits)
		}, true, "1000 of 1000 LoadBalancers"},
		{"there is no limit", used("StandardSkuPublicIpAddresses", 10, -1), false, ""},
		{"another subscription's", func(s *phase.Snapshot, _ *[]phase.Service) {
			s.Usages = []phase.Usage{{Subscription: "t", Name: "StandardSkuPublicIpAddresses", Used: 10, Limit: 10}}
		}, false, ""},
		{"299 rules", rules(297, 0, "kubernetes-internal"), false, ""},
		{"300 rules of both load balancers", rules(298, 0, "kubernetes-internal"), true, "each machine behind load balancer kubernetes would have 300 rules"},
		{"300 rules, one for a pool of its own", rules(298, 1, "kubernetes"), false, "may have up to 300 rules"},
		{"300 rules behind another load balancer", rules(298, 0, "second"), false, ""},
		{"1,501 rules", rules(1499, 1499, "kubernetes"), true, "would have 1501 rules, and a Standard one has at most 1500"},
		{"601 frontends", func(s *phase.Snapshot, limits *[]phase.Service) {
			for n := range 600 {
				ip := s.PublicIPs[0]
				ip.ID.Name = fmt.Sprint("ip", n)
				name := fmt.Sprint("b", n)
				ip.UsedBy = balancerID("kubernetes").String() + "/frontendIPConfigurations/" + name
				s.PublicIPs = append(s.PublicIPs, ip)
				s.LoadBalancers[0].Frontends = append(s.LoadBalancers[0].Frontends, lb.Frontend{Name: name, PublicIP: ip.ID.String()})
				*limits = append(*limits, phase.Service{Name: "ns/" + name, Owner: name, LoadBalancer: balancerID("kubernetes"), Addresses: (*limits)[0].Addresses})
			}
		}, true, "would have 601 frontends, and a Standard one has at most 600"},
	} {
		seen, services := small()
		tt.changed(&seen, &services)
		stops, output := false, ""
		for _, f := range findings(seen, services, terms(), phase.ReasonLimitReached) {
			stops, output = stops || f.IsBlocker, output+f.Message+"\n"
		}
		if stops != tt.stops || (output == "") != (tt.wantText == "") || !strings.Contains(output, tt.wantText) {
			t.Errorf("%s: stops %t\n%s", tt.about, stops, output)
		}
	}
}
