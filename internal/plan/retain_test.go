// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func six(s Share) Share {
	for i := range s.Frontends {
		s.Frontends[i].Family = lb.IPv6
	}
	return s
}

func moves(owner string) Share {
	return Share{Owner: owner, Needs: func(f lb.Frontend) bool { return f.Name == owner }}
}

// A Service does not leave with its address where that would have to stay for good.
func TestAServiceWhoseAddressHasToStayDoesNotLeave(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	p := Make(Input{Observed: after(empty, []Share{service("a1", 80), service("a2", 81)}, pool("theirs")), Shares: []Share{moves("a1"), moves("a2")}, SharedPools: []string{"kubernetes"}})
	if err := p.Refused["a1"]; err == nil || !strings.Contains(err.Error(), "while it has backend pool theirs. Delete") || p.Refused["a2"] != nil || p.Retained != nil {
		t.Errorf("refused %v, %v", err, p.Refused["a2"])
	}
	expect(t, p, "remove rule a2-TCP-81", "remove frontend a2", "remove probe a2-TCP-81")
}

// after is the load balancer after a plan for these Services, with more pools.
func after(is lb.LoadBalancer, shares []Share, pools ...lb.Pool) lb.LoadBalancer {
	next := Make(Input{Observed: is, Shares: shares, SharedPools: []string{"kubernetes"}}).Next
	next.Etag = "1"
	next.Pools = append(next.Pools, pools...)
	return next
}

// Azure refuses a load balancer with other parts and no frontend, and one whose frontends are all IPv6.
func TestAFrontendStaysWhereAzureRequiresOne(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	private := func(owner string) Share {
		s := service(owner, 80)
		s.Frontends[0] = lb.Frontend{Name: owner, Subnet: "/subnets/nodes", Static: true, PrivateIP: netip.MustParseAddr("10.0.0.9"), Family: lb.IPv4}
		return s
	}
	interfaces := pool("kubernetes")
	interfaces.NIC = true
	two := after(empty, []Share{service("a1", 80), six(service("a2", 81))})
	for name, tt := range map[string]struct {
		in       Input
		retained string
		deletes  bool
		text     string
	}{
		"nothing else is left":        {Input{Observed: after(empty, []Share{service("a1", 80)}), Shares: []Share{gone("a1")}}, "", true, ""},
		"a pool of others is left":    {Input{Observed: after(empty, []Share{service("a1", 80)}, pool("theirs")), Shares: []Share{gone("a1")}}, "a1", false, "public IP a1 of load balancer kubernetes is not needed any more and stays without rules: Azure requires it while the load balancer has backend pool theirs."},
		"an internal one":             {Input{Observed: after(empty, []Share{private("a1")}, pool("theirs")), Shares: []Share{gone("a1")}}, "a1", false, "frontend a1 with address 10.0.0.9 of"},
		"interfaces have to leave":    {Input{Observed: after(empty, []Share{service("a1", 80)}), Shares: []Share{gone("a1")}, Emptying: map[string]int{"kubernetes": 3}}, "a1", false, ""},
		"interfaces nobody counted":   {Input{Observed: lb.LoadBalancer{ID: empty.ID, Etag: "1", Frontends: service("a1").Frontends, Pools: []lb.Pool{interfaces}}, Shares: []Share{gone("a1")}}, "a1", false, "while the load balancer has backend pool kubernetes."},
		"another frontend is there":   {Input{Observed: after(foreign(), []Share{service("a1", 80)}), Shares: []Share{gone("a1")}}, "", false, ""},
		"another one takes its place": {Input{Observed: after(empty, []Share{service("a1", 80)}, pool("theirs")), Shares: []Share{gone("a1"), service("a2", 80)}}, "", false, ""},
		"only IPv6 would be left":     {Input{Observed: two, Shares: []Share{gone("a1")}, Others: []string{"a2"}}, "a1", false, "while the load balancer has IPv6 frontends."},
		"only IPv4 would be left":     {Input{Observed: two, Shares: []Share{gone("a2")}, Others: []string{"a1"}}, "", false, ""},
		"not what moves": {Input{
			Observed: after(empty, []Share{service("a1", 80), service("a2", 81)}, pool("theirs")), Shares: []Share{moves("a1"), gone("a2")},
			Made: func(f lb.Frontend) bool { return f.Name != "a2" },
		}, "a2", false, "backend pool theirs"},
		"what moves waits for interfaces": {Input{Observed: after(empty, []Share{service("a1", 80)}), Shares: []Share{moves("a1")}, Emptying: map[string]int{"kubernetes": 3}}, "a1", false, ""},
		"the cheapest of several": {Input{
			Observed: after(empty, []Share{service("a1", 80), service("a2", 81), six(service("a3", 82))}, pool("theirs")), Shares: []Share{gone("a1"), gone("a2"), gone("a3")},
			Made: func(f lb.Frontend) bool { return f.Name != "a1" },
		}, "a2", false, "backend pool theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.SharedPools = []string{"kubernetes"}
			p := Make(tt.in)
			is := ""
			if p.Retained != nil {
				is = p.Retained.Name
			}
			if is != tt.retained || p.Delete != tt.deletes || lb.Tag(p.Next.Tags, TagRetained) != tt.retained {
				t.Fatalf("%q stays, tagged %q, and it is deleted: %t", is, lb.Tag(p.Next.Tags, TagRetained), p.Delete)
			}
			said := ""
			for _, k := range p.Kept {
				said += k.String()
			}
			if !strings.Contains(said, tt.text) || tt.text == "" && said != "" {
				t.Errorf("it says %q", said)
			}
			if tt.retained == "" {
				return
			}
			again := tt.in
			again.Observed = p.Next
			if p := Make(again); !p.Empty() {
				t.Errorf("asked again, it changes %v", spell(p.Changes))
			}
			again.Shares = []Share{service("a9", 90)}
			if p := Make(again); p.Retained != nil || !strings.Contains(strings.Join(spell(p.Changes), "; "), "remove frontend "+tt.retained) || lb.Tag(p.Next.Tags, TagRetained) != "" {
				t.Errorf("beside another Service %v stays: %v", p.Retained, spell(p.Changes))
			}
		})
	}
}

func TestAServiceWithoutIPv4IsRefused(t *testing.T) {
	empty := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}
	refused := func(is lb.LoadBalancer, shares ...Share) error {
		return Make(Input{Observed: is, Shares: shares}).Refused["a2"]
	}
	if err := refused(empty, six(service("a2", 80))); !errors.Is(err, ErrNoIPv4) || !strings.Contains(err.Error(), "PreferDualStack") {
		t.Errorf("alone: %v", err)
	}
	if err := refused(empty, six(service("a2", 80)), service("a1", 80)); err != nil {
		t.Errorf("beside IPv4: %v", err)
	}
	clash := service("a1", 22)
	clash.Frontends[0].PublicIP, clash.Rules[0].BackendPort = "/pip/appliance", 23
	is := foreign()
	is.Frontends[0].Family, is.Frontends[1].Family = lb.IPv6, lb.IPv6
	if err := refused(is, six(service("a2", 80)), clash); !errors.Is(err, ErrNoIPv4) {
		t.Errorf("beside one that is refused: %v", err)
	}
	if err := Exceeding(Input{Observed: empty, Shares: []Share{six(service("a2", 80)), {Owner: "a1", Unresolved: service("a1").Frontends}}})["a2"]; err != nil {
		t.Errorf("beside one whose public IP is not found yet: %v", err)
	}
	if err := refused(foreign(), six(service("a2", 80))); err != nil {
		t.Errorf("beside those of others: %v", err)
	}
}
