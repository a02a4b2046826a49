// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
)

// A new private frontend gets the zones it is given. Zones of an existing frontend never change, whatever else of it does;
// a public frontend has none.
func TestZonesAreOfNewPrivateFrontendsOnly(t *testing.T) {
	three := []string{"1", "2", "3"}
	private := func(owner, address string, zones []string) ServiceParts {
		s := newTestParts(owner, 80)
		s.Frontends[0] = lb.Frontend{Name: owner, Subnet: "/subnet", Family: lb.IPv4, Zones: zones}
		if address != "" {
			s.Frontends[0].Static, s.Frontends[0].PrivateIP = true, netip.MustParseAddr(address)
		}
		return s
	}
	zonesOf := func(p Plan, name string) []string {
		i := slices.IndexFunc(p.Next.Frontends, func(f lb.Frontend) bool { return f.Name == name })
		return p.Next.Frontends[i].Zones
	}
	public := newTestParts("ab", 80)
	public.Frontends[0].Zones = three
	p := Make(Input{Observed: foreign(), Services: []ServiceParts{private("aa", "", three), public}})
	if !slices.Equal(zonesOf(p, "aa"), three) || zonesOf(p, "ab") != nil {
		t.Fatalf("%+v", p.Next.Frontends)
	}
	expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{private("aa", "", []string{"1"}), public}}))
	expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{private("aa", "", nil), public}}))
	moved := expect(t, Make(Input{Observed: p.Next, Services: []ServiceParts{private("aa", "10.0.0.9", []string{"2"}), public}}), "change frontend aa")
	if !slices.Equal(zonesOf(moved, "aa"), three) {
		t.Errorf("%+v", moved.Next.Frontends)
	}
	before := foreign()
	before.Frontends = append(before.Frontends, lb.Frontend{Name: "ac", Subnet: "/subnet", Family: lb.IPv4})
	p = Make(Input{Observed: before, Services: []ServiceParts{private("ac", "", three)}})
	if zonesOf(p, "ac") != nil {
		t.Errorf("a frontend without zones gets %v", zonesOf(p, "ac"))
	}
}

// Which existing frontend a Service gets is the plan's choice: a frontend of its name that others use is none, one of another
// name is.
func TestFrontendAtIsThatOfThePlan(t *testing.T) {
	private := func(name, address string) lb.Frontend {
		f := lb.Frontend{Name: name, Subnet: "/subnet", Family: lb.IPv4}
		if address != "" {
			f.Static, f.PrivateIP = true, netip.MustParseAddr(address)
		}
		return f
	}
	static, dynamic := private("aa", "10.0.0.9"), private("aa", "")
	renamed := func(f lb.Frontend) lb.Frontend { f.Name = alternateName(f); return f }
	ofOthers := []lb.Rule{{Name: "ab-TCP-80", Transport: lb.TCP, Frontend: "aa", FrontendPort: 80}}
	for about, tt := range map[string]struct {
		frontends []lb.Frontend
		rules     []lb.Rule
		want      lb.Frontend
		exists    string
	}{
		"none":                                      {nil, nil, static, ""},
		"its own":                                   {[]lb.Frontend{static}, nil, static, "aa"},
		"its own, with another address":             {[]lb.Frontend{private("aa", "10.0.0.8")}, nil, static, "aa"},
		"its name, used by others":                  {[]lb.Frontend{private("aa", "10.0.0.8")}, ofOthers, static, ""},
		"its name, used by others, and another":     {[]lb.Frontend{private("aa", "10.0.0.8"), renamed(static)}, ofOthers, static, renamed(static).Name},
		"that of others at its address":             {[]lb.Frontend{private("ab", "10.0.0.9")}, ofOthers, static, "ab"},
		"dynamic":                                   {[]lb.Frontend{dynamic}, nil, dynamic, "aa"},
		"dynamic, its name used by others":          {[]lb.Frontend{private("aa", "10.0.0.8")}, ofOthers, dynamic, ""},
		"dynamic, of another name":                  {[]lb.Frontend{renamed(dynamic)}, nil, dynamic, renamed(dynamic).Name},
		"dynamic, its name used by others, another": {[]lb.Frontend{private("aa", "10.0.0.8"), renamed(dynamic)}, ofOthers, dynamic, renamed(dynamic).Name},
	} {
		observed := lb.LoadBalancer{Frontends: tt.frontends, Rules: tt.rules}
		frontend, exists := FrontendAt(observed, "aa", tt.want)
		if frontend.Name != tt.exists || exists != (tt.exists != "") {
			t.Errorf("%s: %q, %t; want %q", about, frontend.Name, exists, tt.exists)
		}
		s := newTestParts("aa", 81)
		tt.want.Zones = []string{"1"}
		s.Frontends[0] = tt.want
		p := Make(Input{Observed: observed, Services: []ServiceParts{s}})
		at := slices.IndexFunc(p.Next.Rules, func(r lb.Rule) bool { return r.Name == "aa-TCP-81" })
		if at < 0 {
			t.Fatalf("%s: %v", about, p.Rejected)
		}
		i := slices.IndexFunc(p.Next.Frontends, func(f lb.Frontend) bool { return f.Name == p.Next.Rules[at].Frontend })
		if got := p.Next.Frontends[i]; (len(got.Zones) == 0) != exists || exists && got.Name != tt.exists {
			t.Errorf("%s: the plan has %+v", about, got)
		}
	}
}
