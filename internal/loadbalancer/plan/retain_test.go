// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func six(s ServiceParts) ServiceParts {
	for i := range s.Frontends {
		s.Frontends[i].Family = lb.IPv6
	}
	return s
}

func moves(owner string) ServiceParts {
	return ServiceParts{Owner: owner, NeedsAddress: func(f lb.Frontend) bool { return f.Name == owner }}
}

// A Service does not leave if its address would have to stay forever.
func TestAServiceWhoseAddressHasToStayDoesNotLeave(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	p := Make(Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80), newTestParts("a2", 81)}, pool("theirs")), Services: []ServiceParts{moves("a1"), moves("a2")}, SharedPools: []string{"kubernetes"}})
	if err := p.Rejected["a1"]; err == nil || !strings.Contains(err.Error(), "while it has backend pool theirs. Delete") || p.Rejected["a2"] != nil || p.RetainedFrontend != nil {
		t.Errorf("refused %v, %v", err, p.Rejected["a2"])
	}
	expect(t, p, "remove rule a2-TCP-81", "remove frontend a2", "remove probe a2-TCP-81")
}

// after returns the load balancer after a plan, with more pools.
func after(balancer lb.LoadBalancer, services []ServiceParts, pools ...lb.Pool) lb.LoadBalancer {
	next := Make(Input{Observed: balancer, Services: services, SharedPools: []string{"kubernetes"}}).Next
	next.Etag = "1"
	next.Pools = append(next.Pools, pools...)
	return next
}

// Azure rejects a load balancer with parts but no frontend, or with only IPv6 frontends.
func TestAFrontendStaysWhereAzureRequiresOne(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	private := func(owner string) ServiceParts {
		s := newTestParts(owner, 80)
		s.Frontends[0] = lb.Frontend{Name: owner, Subnet: "/subnets/nodes", Static: true, PrivateIP: netip.MustParseAddr("10.0.0.9"), Family: lb.IPv4}
		return s
	}
	interfaces := pool("kubernetes")
	interfaces.NIC = true
	two := after(empty, []ServiceParts{newTestParts("a1", 80), six(newTestParts("a2", 81))})
	for name, tt := range map[string]struct {
		in       Input
		retained string
		deletes  bool
		text     string
	}{
		"nothing else is left":      {Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80)}), Services: []ServiceParts{gone("a1")}}, "", true, ""},
		"a foreign pool remains":    {Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80)}, pool("theirs")), Services: []ServiceParts{gone("a1")}}, "a1", false, "public IP a1 of load balancer kubernetes is no longer needed and is retained without rules: Azure requires it while the load balancer has backend pool theirs."},
		"an internal one":           {Input{Observed: after(empty, []ServiceParts{private("a1")}, pool("theirs")), Services: []ServiceParts{gone("a1")}}, "a1", false, "frontend a1 with address 10.0.0.9 of"},
		"interfaces must leave":     {Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80)}), Services: []ServiceParts{gone("a1")}, RemainingInterfaces: map[string]int{"kubernetes": 3}}, "a1", false, ""},
		"uncounted interfaces":      {Input{Observed: lb.LoadBalancer{ID: empty.ID, Etag: "1", Frontends: newTestParts("a1").Frontends, Pools: []lb.Pool{interfaces}}, Services: []ServiceParts{gone("a1")}}, "a1", false, "while the load balancer has backend pool kubernetes."},
		"another frontend is there": {Input{Observed: after(foreign(), []ServiceParts{newTestParts("a1", 80)}), Services: []ServiceParts{gone("a1")}}, "", false, ""},
		"it is replaced":            {Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80)}, pool("theirs")), Services: []ServiceParts{gone("a1"), newTestParts("a2", 80)}}, "", false, ""},
		"only IPv6 would remain":    {Input{Observed: two, Services: []ServiceParts{gone("a1")}, Others: []string{"a2"}}, "a1", false, "while the load balancer has IPv6 frontends."},
		"only IPv4 would be left":   {Input{Observed: two, Services: []ServiceParts{gone("a2")}, Others: []string{"a1"}}, "", false, ""},
		"not what moves": {Input{
			Observed: after(empty, []ServiceParts{newTestParts("a1", 80), newTestParts("a2", 81)}, pool("theirs")), Services: []ServiceParts{moves("a1"), gone("a2")},
			IsManaged: func(f lb.Frontend) bool { return f.Name != "a2" },
		}, "a2", false, "backend pool theirs"},
		"what moves waits for interfaces": {Input{Observed: after(empty, []ServiceParts{newTestParts("a1", 80)}), Services: []ServiceParts{moves("a1")}, RemainingInterfaces: map[string]int{"kubernetes": 3}}, "a1", false, ""},
		"the cheapest of several": {Input{
			Observed: after(empty, []ServiceParts{newTestParts("a1", 80), newTestParts("a2", 81), six(newTestParts("a3", 82))}, pool("theirs")), Services: []ServiceParts{gone("a1"), gone("a2"), gone("a3")},
			IsManaged: func(f lb.Frontend) bool { return f.Name != "a1" },
		}, "a2", false, "backend pool theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.SharedPools = []string{"kubernetes"}
			p := Make(tt.in)
			got := ""
			if p.RetainedFrontend != nil {
				got = p.RetainedFrontend.Name
			}
			if got != tt.retained || p.Delete != tt.deletes || lb.TagValue(p.Next.Tags, TagRetained) != tt.retained {
				t.Fatalf("%q stays, tagged %q, and it is deleted: %t", got, lb.TagValue(p.Next.Tags, TagRetained), p.Delete)
			}
			output := ""
			for _, k := range p.RetainedParts {
				output += k.String()
			}
			if !strings.Contains(output, tt.text) || tt.text == "" && output != "" {
				t.Errorf("it says %q", output)
			}
			if tt.retained == "" {
				return
			}
			second := tt.in
			second.Observed = p.Next
			if p := Make(second); !p.IsEmpty() {
				t.Errorf("asked again, it changes %v", spell(p.Changes))
			}
			second.Services = []ServiceParts{newTestParts("a9", 90)}
			if p := Make(second); p.RetainedFrontend != nil || !strings.Contains(strings.Join(spell(p.Changes), "; "), "remove frontend "+tt.retained) || lb.TagValue(p.Next.Tags, TagRetained) != "" {
				t.Errorf("beside another Service %v stays: %v", p.RetainedFrontend, spell(p.Changes))
			}
		})
	}
}

// A plan without Services deletes unused left parts, and the load balancer if nothing else remains. Foreign and
// usable parts stay.
func TestUnusedRetainedPartsAreDeleted(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	full := pool("shop-web")
	full.Addresses = []lb.Address{{IP: netip.MustParseAddr("192.0.2.7")}}
	remaining := func(edit func(*lb.LoadBalancer), pools ...lb.Pool) lb.LoadBalancer { // by a Service a1
		b := after(empty, []ServiceParts{newTestParts("a1", 80)}, pools...)
		b = Make(Input{Observed: b, Services: []ServiceParts{gone("a1")}, SharedPools: []string{"kubernetes"}, ForeignMembers: map[string][]string{"shop-web": {"192.0.2.7"}}}).Next
		if edit != nil {
			edit(&b)
		}
		return b
	}
	nothing := []string{"remove frontend a1", "remove pool shop-web", "remove pool kubernetes"}
	for name, tt := range map[string]struct {
		in   Input
		want []string // expected changes; it is deleted if these are all parts
		gone bool
	}{
		"it is empty":               {Input{Observed: remaining(nil, pool("shop-web"))}, nothing, true},
		"it has a member":           {Input{Observed: remaining(nil, full)}, nil, false},
		"it is not on record":       {Input{Observed: remaining(nil, pool("theirs"))}, nil, false},
		"a rule of others uses it":  {Input{Observed: remaining(func(b *lb.LoadBalancer) { b.Rules = []lb.Rule{{Name: "theirs", Pool: "Shop-Web", Frontend: "a1"}} }, pool("shop-web"))}, nil, false},
		"an outbound rule uses it":  {Input{Observed: remaining(func(b *lb.LoadBalancer) { b.Pinned = map[string]bool{"shop-web": true} }, pool("shop-web"))}, nil, false},
		"network interfaces are in": {Input{Observed: remaining(func(b *lb.LoadBalancer) { b.Pools[1].NIC = true }, pool("shop-web"))}, nil, false},
		"a Service is there":        {Input{Observed: after(empty, []ServiceParts{newTestParts("a2", 81)}, pool("shop-web")), Others: []string{"a2"}}, []string{"remove pool shop-web"}, false},
		"a Service takes it": {Input{Observed: after(empty, []ServiceParts{newTestParts("a2", 81)}, pool("shop-web")), Services: []ServiceParts{func() ServiceParts {
			s := newTestParts("a2", 81)
			s.Pools = append(s.Pools, pool("shop-web"))
			return s
		}()}}, nil, false},
		"interfaces must leave": {Input{Observed: remaining(nil, pool("shop-web")), RemainingInterfaces: map[string]int{"kubernetes": 1}}, []string{"remove pool shop-web"}, false},
		"a frontend was pinned": {Input{Observed: func() lb.LoadBalancer {
			b := after(empty, []ServiceParts{newTestParts("a1", 80)})
			b.Rules, b.Probes = nil, nil
			return b
		}(), IsAbandoned: func(f lb.Frontend) bool { return f.Name == "a1" }}, []string{"remove frontend a1", "remove pool kubernetes"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.SharedPools, tt.in.LeftPools = []string{"kubernetes"}, []string{"shop-web"}
			p := Make(tt.in)
			if got := spell(p.Changes); !slices.Equal(got, tt.want) || p.Delete != tt.gone {
				t.Errorf("deleted %t: %q, want %q", p.Delete, got, tt.want)
			}
		})
	}
}

// A part used by a foreign rule stays and is reported with that rule.
func TestPartsUsedByForeignRulesAreReported(t *testing.T) {
	local := newTestParts("a1", 80)
	local.DedicatedPools, local.Pools, local.Rules[0].Pool = []string{"shop-web"}, []lb.Pool{pool("shop-web")}, "shop-web"
	six := six(newTestParts("a1-IPv6", 80))
	for name, tt := range map[string]struct {
		edit     func(*lb.LoadBalancer)
		services []ServiceParts
		want     string // the beginning and the reason
	}{
		"nothing": {func(*lb.LoadBalancer) {}, []ServiceParts{gone("a1", "shop-web")}, ""},
		"a rule to the pool": {func(b *lb.LoadBalancer) {
			b.Rules = append(b.Rules, lb.Rule{Name: "theirs", Pool: "shop-web", Frontend: "appliance"})
		}, []ServiceParts{gone("a1", "shop-web")}, "backend pool shop-web of load balancer kubernetes is no longer needed and is retained: rule theirs sends flows to it"},
		"an outbound rule to the pool": {func(b *lb.LoadBalancer) { b.Pinned["shop-web"] = true }, []ServiceParts{gone("a1", "shop-web")},
			"backend pool shop-web of load balancer kubernetes is no longer needed and is retained: an outbound or inbound NAT rule refers to it"},
		"a NAT rule at the frontend": {func(b *lb.LoadBalancer) { b.Pinned["a1"] = true }, []ServiceParts{gone("a1", "shop-web")},
			"frontend a1 with public IP a1 of load balancer kubernetes is no longer needed and is retained without rules of the Service: an outbound or inbound NAT rule refers to it"},
		"a NAT rule at the frontend of a family": {func(b *lb.LoadBalancer) { b.Pinned["a1"] = true }, []ServiceParts{{Owner: "a1", Frontends: six.Frontends, Pools: local.Pools}},
			"frontend a1 with public IP a1 of load balancer kubernetes"},
		"a NAT rule at a frontend that it has": {func(b *lb.LoadBalancer) { b.Pinned["a1"] = true }, []ServiceParts{local}, ""},
		"of another owner's":                   {func(b *lb.LoadBalancer) { b.Pinned["appliance"] = true }, []ServiceParts{gone("a1", "shop-web")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			balancer := Make(Input{Observed: foreign(), Services: []ServiceParts{local}}).Next
			balancer.Etag = "1"
			tt.edit(&balancer)
			output := ""
			for _, k := range Make(Input{Observed: balancer, Services: tt.services}).RetainedParts {
				output += k.String()
			}
			if !strings.HasPrefix(output, tt.want) || tt.want == "" && output != "" {
				t.Errorf("it says %q", output)
			}
		})
	}
}

func TestAServiceWithoutIPv4IsRefused(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	refused := func(balancer lb.LoadBalancer, services ...ServiceParts) error {
		return Make(Input{Observed: balancer, Services: services}).Rejected["a2"]
	}
	if err := refused(empty, six(newTestParts("a2", 80))); !errors.Is(err, ErrNoIPv4) || !strings.Contains(err.Error(), "PreferDualStack") {
		t.Errorf("alone: %v", err)
	}
	if err := refused(empty, six(newTestParts("a2", 80)), newTestParts("a1", 80)); err != nil {
		t.Errorf("beside IPv4: %v", err)
	}
	clash := newTestParts("a1", 22)
	clash.Frontends[0].PublicIP, clash.Rules[0].BackendPort = "/pip/appliance", 23
	balancer := foreign()
	balancer.Frontends[0].Family, balancer.Frontends[1].Family = lb.IPv6, lb.IPv6
	if err := refused(balancer, six(newTestParts("a2", 80)), clash); !errors.Is(err, ErrNoIPv4) {
		t.Errorf("beside one that is refused: %v", err)
	}
	if err := OverLimit(Input{Observed: empty, Services: []ServiceParts{six(newTestParts("a2", 80)), {Owner: "a1", Unresolved: newTestParts("a1").Frontends}}})["a2"]; err != nil {
		t.Errorf("beside one whose public IP is not found yet: %v", err)
	}
	if err := refused(foreign(), six(newTestParts("a2", 80))); err != nil {
		t.Errorf("beside those of others: %v", err)
	}
}
