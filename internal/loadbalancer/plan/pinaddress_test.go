// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

func TestFixed(t *testing.T) {
	addr, due := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.9")
	want := lb.Frontend{Name: "a", Family: lb.IPv4, Subnet: "/s"}
	named := want
	named.Static, named.PrivateIP = true, netip.MustParseAddr("10.0.0.8")
	current := func(static bool, subnet string) []lb.Frontend {
		return []lb.Frontend{{Name: "A", Family: lb.IPv4, Subnet: subnet, PrivateIP: addr, Static: static}}
	}
	for about, tt := range map[string]struct {
		want lb.Frontend
		has  []lb.Frontend
		owes bool
		ip   netip.Addr
	}{
		"any address":                   {want: want},
		"it has one":                    {want: want, has: current(true, "/S"), owes: true, ip: addr},
		"it has one that Azure chose":   {want: want, has: current(false, "/s"), owes: true},
		"it has one of another subnet":  {want: want, has: current(true, "/other"), owes: true},
		"it is owed one":                {want: want, owes: true, ip: due},
		"it is owed one, and names one": {want: named, owes: true, ip: named.PrivateIP},
		"it has one, and names another": {want: named, has: current(true, "/s"), ip: named.PrivateIP},
		"it is public":                  {want: lb.Frontend{Name: "a", PublicIP: "/p"}, owes: true},
	} {
		owed := func(lb.Frontend) (netip.Addr, bool) { return due, tt.owes }
		if got := PinAddress(tt.want, "a", "shop/a", nil, lb.LoadBalancer{Frontends: tt.has}, owed); got.PrivateIP != tt.ip || got.Static != tt.ip.IsValid() {
			t.Errorf("%s: %+v", about, got)
		}
	}
	if got := PinAddress(want, "a", "shop/a", nil, lb.LoadBalancer{}, nil); got.Static {
		t.Errorf("nothing is owed: %+v", got)
	}
}

// A Service gets its former address if its ports are free there. At the address of its own rules, a taken port
// is a rejection.
func TestFixedWhereOthersHavePorts(t *testing.T) {
	want := lb.Frontend{Name: "aa", Family: lb.IPv4, Subnet: "/s"}
	at := func(name, ip string, static bool) lb.Frontend {
		return lb.Frontend{Name: name, Family: lb.IPv4, Subnet: "/s", PrivateIP: netip.MustParseAddr(ip), Static: static}
	}
	rule := func(owner, frontend string, transport lb.Transport, port int32) lb.Rule {
		return lb.Rule{Name: fmt.Sprintf("%s-%s-%d", owner, transport, port), Frontend: frontend, Transport: transport, FrontendPort: port}
	}
	former, other := at("aa", "10.0.0.50", true), at("aa-1234", "10.0.0.4", false)
	for about, tt := range map[string]struct {
		frontends []lb.Frontend
		rules     []lb.Rule
		ip        string
	}{
		"no Service is there":                  {[]lb.Frontend{former}, nil, "10.0.0.50"},
		"its port is free":                     {[]lb.Frontend{former}, []lb.Rule{rule("bb", "aa", lb.TCP, 81)}, "10.0.0.50"},
		"its port is free for its protocol":    {[]lb.Frontend{former}, []lb.Rule{rule("bb", "aa", lb.UDP, 80)}, "10.0.0.50"},
		"its port is taken":                    {[]lb.Frontend{former}, []lb.Rule{rule("bb", "AA", lb.TCP, 80)}, ""},
		"all ports are taken":                  {[]lb.Frontend{former}, []lb.Rule{rule("bb", "aa", lb.All, 0)}, ""},
		"its port is taken elsewhere":          {[]lb.Frontend{former, at("bb", "10.0.0.51", true)}, []lb.Rule{rule("bb", "bb", lb.TCP, 80)}, "10.0.0.50"},
		"it has the address":                   {[]lb.Frontend{former}, []lb.Rule{rule("aa", "aa", lb.TCP, 82), rule("bb", "aa", lb.TCP, 80)}, "10.0.0.50"},
		"it has another one, the port is free": {[]lb.Frontend{former, other}, []lb.Rule{rule("aa", "aa-1234", lb.TCP, 80), rule("bb", "aa", lb.TCP, 81)}, ""},
		"it has another one, listed first":     {[]lb.Frontend{other, former}, []lb.Rule{rule("aa", "aa-1234", lb.TCP, 80)}, ""},
		"it is at the frontend of another":     {[]lb.Frontend{at("bb", "10.0.0.51", true)}, []lb.Rule{rule("aa", "bb", lb.TCP, 80)}, ""},
		"of the other family":                  {[]lb.Frontend{{Name: "aa", Family: lb.IPv6, Subnet: "/s", PrivateIP: netip.MustParseAddr("fd00::9"), Static: true}}, nil, ""},
	} {
		got := PinAddress(want, "aa", "shop/aa", []lb.Rule{rule("aa", "aa", lb.TCP, 80), rule("aa", "aa-IPv6", lb.UDP, 80)}, lb.LoadBalancer{Frontends: tt.frontends, Rules: tt.rules}, nil)
		if current := fmt.Sprint(got.PrivateIP); got.Static != (tt.ip != "") || got.Static && current != tt.ip {
			t.Errorf("%s: %+v, want %q", about, got, tt.ip)
		}
	}
}

// A Service without rules that requests no address is never rejected for a port; afterwards it retains its
// address, whatever Services leave.
func TestLawFixed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(owner, frontend, label string) (rules []lb.Rule) {
			for _, port := range rapid.SliceOfNDistinct(rapid.Int32Range(80, 83), 1, 3, rapid.ID).Draw(t, label) {
				transport := rapid.SampledFrom([]lb.Transport{lb.TCP, lb.TCP, lb.TCP, lb.UDP}).Draw(t, label+" transport")
				rules = append(rules, lb.Rule{Name: fmt.Sprintf("%s-%s-%d", owner, transport, port), Frontend: frontend, Transport: transport, FrontendPort: port, BackendPort: port, FloatingIP: true, Pool: "k"})
			}
			return rules
		}
		observed := lb.LoadBalancer{Etag: "1", Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}}}, Rules: draw("bb", "aa", "others")}
		observed.Frontends = []lb.Frontend{{Name: "aa", Family: lb.IPv4, Subnet: "/s", PrivateIP: netip.MustParseAddr("10.0.0.50"), Static: true}}
		wanted := lb.Frontend{Name: "aa", Family: lb.IPv4, Subnet: "/s"}
		rules := draw("aa", "aa", "wanted")
		planned := func() Plan {
			in := Input{Observed: observed, SharedPools: []string{"k"}, Others: []string{"bb"}}
			in.Services = []ServiceParts{{Owner: "aa", Frontends: []lb.Frontend{PinAddress(wanted, "aa", "shop/aa", rules, observed, nil)}, Rules: rules, Pools: observed.Pools}}
			p := Make(in)
			if len(p.Rejected) > 0 {
				t.Fatalf("refused: %v", p.Rejected)
			}
			observed = p.Next
			for i, f := range observed.Frontends {
				if !f.PrivateIP.IsValid() {
					observed.Frontends[i].PrivateIP = netip.MustParseAddr("10.0.0.4")
				}
			}
			return p
		}
		has := func() lb.Frontend { return observed.Frontends[FrontendOf(observed, rules, "aa")] }
		planned()
		first := has()
		if rapid.Bool().Draw(t, "others leave") {
			observed.Rules = slices.DeleteFunc(observed.Rules, func(r lb.Rule) bool { return hasOwner("bb", r.Name) })
		}
		planned()
		if frontend := has(); frontend.PrivateIP != first.PrivateIP || frontend.Static != first.Static {
			t.Fatalf("had %+v, has %+v", first, frontend)
		}
		if p := planned(); !p.IsEmpty() {
			t.Fatalf("it does not come to rest: %+v", p.Changes)
		}
	})
}
