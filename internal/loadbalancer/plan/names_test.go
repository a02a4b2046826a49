// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
)

// A Service that changes its address leaves a frontend that other parts use, and the next plan is empty.
func TestFrontendStaysWithItsUsers(t *testing.T) {
	fixed := func(name, ip string) lb.Frontend {
		return lb.Frontend{Name: name, Subnet: "/net", Static: true, PrivateIP: netip.MustParseAddr(ip), Family: lb.IPv4}
	}
	public := func(name, ip string) lb.Frontend { return lb.Frontend{Name: name, PublicIP: "/pip/" + ip} }
	rule := func(name, frontend string, port int32) lb.Rule {
		return lb.Rule{Name: name, Frontend: frontend, FrontendPort: port, BackendPort: port, Transport: lb.TCP, FloatingIP: true, Pool: "k"}
	}
	chosen := lb.Frontend{Name: "aa", Subnet: "/net", Family: lb.IPv4}
	for about, tt := range map[string]struct {
		before, want lb.Frontend
		pinned       bool
	}{
		"to another public IP":          {before: public("aa", "1"), want: public("aa", "2")},
		"to another private address":    {before: fixed("aa", "10.0.0.1"), want: fixed("aa", "10.0.0.2")},
		"to one that Azure chooses":     {before: fixed("aa", "10.0.0.1"), want: chosen},
		"an outbound rule refers to it": {before: public("aa", "1"), want: public("aa", "2"), pinned: true},
	} {
		for _, due := range []bool{true, false} {
			in := Input{Observed: lb.LoadBalancer{Etag: "1", Frontends: []lb.Frontend{tt.before}, Pools: []lb.Pool{{ID: lb.PoolID{Name: "k"}}}, Rules: []lb.Rule{rule("aa-80", "aa", 80)}}, SharedPools: []string{"k"}}
			if in.Observed.Pinned = map[string]bool{"aa": tt.pinned}; !tt.pinned {
				in.Observed.Rules = append(in.Observed.Rules, rule("bb-81", "aa", 81))
			}
			pools := in.Observed.Pools
			in.Services = []ServiceParts{{Owner: "aa", Frontends: []lb.Frontend{tt.want}, Rules: []lb.Rule{rule("aa-80", "aa", 80)}, Pools: pools}}
			if due && !tt.pinned {
				beside := tt.before
				beside.Name = "bb"
				in.Services = append(in.Services, ServiceParts{Owner: "bb", Frontends: []lb.Frontend{beside}, Rules: []lb.Rule{rule("bb-81", "bb", 81)}, Pools: pools})
			}
			p := Make(in)
			at := slices.IndexFunc(p.Next.Rules, func(r lb.Rule) bool { return r.Name == "aa-80" })
			if len(p.Rejected) > 0 || len(p.Next.Frontends) != 2 || placeOf(p.Next.Frontends[0]) != placeOf(tt.before) || p.Next.Frontends[0].Name != "aa" || at < 0 || p.Next.Rules[at].Frontend != p.Next.Frontends[1].Name {
				t.Errorf("%s, the other due: %t: refused %v, %+v, %+v", about, due, p.Rejected, p.Next.Frontends, p.Next.Rules)
			}
			in.Observed = p.Next
			if second := Make(in); !second.IsEmpty() {
				t.Errorf("%s: again: %s", about, fmt.Sprint(second.Changes))
			}
		}
	}
}
