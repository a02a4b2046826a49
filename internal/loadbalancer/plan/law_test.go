// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// drawParts generates a Service; with places, some share an address.
func drawParts(t *rapid.T, owner string, places int) ServiceParts {
	s := newTestParts(owner, rapid.SliceOfNDistinct(rapid.Int32Range(80, 84), 0, 3, rapid.ID[int32]).Draw(t, owner+" ports")...)
	if len(s.Rules) == 0 {
		return gone(owner, owner+"-pool")
	}
	if places > 0 {
		s.Frontends[0].PublicIP = fmt.Sprint("/pip/", rapid.IntRange(1, places).Draw(t, owner+" place"))
	}
	if rapid.Bool().Draw(t, owner+" local") {
		s.Pools = []lb.Pool{pool(owner + "-pool")}
		for i := range s.Rules {
			s.Rules[i].Pool = owner + "-pool"
		}
	}
	s.DedicatedPools = []string{owner + "-pool"}
	s.Rules[0].IdleMinutes = rapid.Int32Range(4, 5).Draw(t, owner+" idle")
	return s
}

var owners = []string{"aa", "ab", "ac", "ad"}

// Planning is idempotent, satisfies every Service and changes no foreign part.
func TestLawTwiceIsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Observed: foreign(), SharedPools: []string{"kubernetes"}}
		refused := false
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			in.Services = nil
			for _, owner := range rapid.SliceOfNDistinct(rapid.SampledFrom(owners), 1, len(owners), rapid.ID[string]).Draw(t, "due") {
				in.Services = append(in.Services, drawParts(t, owner, 3))
			}
			p := Make(in)
			served(t, in, p)
			in.Observed = p.Next
			settles(t, in, p)
			untouched(t, p.Next)
			refused = refused || len(p.Rejected) > 0
			sound(t, p.Next, refused)
		}
	})
}

// settles checks that planning again is empty. With competing ports, Services may swap later: it ends within
// one plan per Service.
func settles(t *rapid.T, in Input, p Plan) {
	for range in.Services {
		second := Make(in)
		if second.IsEmpty() {
			return
		}
		if len(p.Rejected) == 0 {
			t.Fatalf("again: %v", spell(second.Changes))
		}
		served(t, in, second)
		in.Observed = second.Next
	}
	if second := Make(in); !second.IsEmpty() {
		t.Fatalf("it does not settle: %v", spell(second.Changes))
	}
}

// Whatever the path, the load balancer equals that of a new cluster, unless addresses are shared: the first
// Service names the frontend.
func TestLawThePathDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := map[string]ServiceParts{}
		walked := Input{Observed: foreign(), SharedPools: []string{"kubernetes"}}
		for range rapid.IntRange(1, 10).Draw(t, "edits") {
			s := drawParts(t, rapid.SampledFrom(owners).Draw(t, "edited"), 0)
			last[s.Owner] = s
			walked.Services = []ServiceParts{s}
			walked.Observed = Make(walked).Next
		}
		fresh := Input{Observed: foreign(), SharedPools: walked.SharedPools}
		for _, owner := range owners {
			if s, ok := last[owner]; ok {
				fresh.Services = append(fresh.Services, s)
			}
		}
		byName := cmp.Options{
			cmpopts.SortSlices(func(a, b lb.Rule) bool { return a.Name < b.Name }),
			cmpopts.SortSlices(func(a, b lb.Probe) bool { return a.Name < b.Name }),
			cmpopts.SortSlices(func(a, b lb.Frontend) bool { return a.Name < b.Name }),
			cmpopts.IgnoreFields(lb.LoadBalancer{}, "Pools"), // a shared pool stays after its last Service
			cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty(),
		}
		if diff := cmp.Diff(Make(fresh).Next, walked.Observed, byName); diff != "" {
			t.Fatalf("-fresh +walked\n%s", diff)
		}
	})
}

// served checks that each accepted Service has exactly its rules at the wanted addresses, and that other rules
// are unchanged.
func served(t *rapid.T, in Input, p Plan) {
	places := func(b lb.LoadBalancer) map[string]string {
		at := map[string]string{}
		for _, f := range b.Frontends {
			at[f.Name] = placeOf(f)
		}
		return at
	}
	before, after := places(in.Observed), places(p.Next)
	want := map[string]string{}
	for _, r := range in.Observed.Rules {
		if s := indexServices(in.Services).ownerOf(r.Name); s == "" || p.Rejected[s] != nil {
			want[r.Name] = before[r.Frontend]
		}
	}
	for _, s := range in.Services {
		for _, r := range s.Rules {
			if p.Rejected[s.Owner] == nil {
				want[r.Name] = placeOf(s.Frontends[0])
			}
		}
	}
	got := map[string]string{}
	for _, r := range p.Next.Rules {
		got[r.Name] = after[r.Frontend]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("rules and their addresses, -want +got\n%s", diff)
	}
	taken := map[string]string{}
	for _, f := range p.Next.Frontends {
		if other := taken[placeOf(f)]; other != "" {
			t.Fatalf("frontends %s and %s have the same address", other, f.Name)
		}
		taken[placeOf(f)] = f.Name
	}
}

func untouched(t *rapid.T, next lb.LoadBalancer) {
	before := foreign()
	for _, f := range before.Frontends {
		if !slices.ContainsFunc(next.Frontends, func(o lb.Frontend) bool { return sameFrontend(o, f) }) {
			t.Fatalf("frontend %s is gone or changed", f.Name)
		}
	}
	for _, r := range before.Rules {
		if !slices.ContainsFunc(next.Rules, func(o lb.Rule) bool { return sameRule(o, r) }) {
			t.Fatalf("rule %s is gone or changed", r.Name)
		}
	}
	for _, p := range before.Pools {
		if !containsName(poolNames(next.Pools), p.ID.Name) {
			t.Fatalf("pool %s is gone", p.ID.Name)
		}
	}
}

// sound checks that references resolve and nothing of Weir is left; a rejected Service may retain a frontend.
func sound(t *rapid.T, b lb.LoadBalancer, refused bool) {
	frontends := map[string]bool{}
	for _, f := range b.Frontends {
		frontends[f.Name] = true
	}
	probes := map[string]bool{}
	for _, p := range b.Probes {
		probes[p.Name] = true
	}
	for _, r := range b.Rules {
		if !frontends[r.Frontend] || !probes[r.Probe] || !containsName(poolNames(b.Pools), r.Pool) {
			t.Fatalf("rule %+v refers to nothing", r)
		}
		delete(probes, r.Probe)
	}
	if len(probes) > 0 {
		t.Fatalf("probes %v are left over", probes)
	}
	for _, f := range b.Frontends {
		if strings.HasPrefix(f.Name, "a") && !refused && f.Name != "appliance" && !slices.ContainsFunc(b.Rules, func(r lb.Rule) bool { return r.Frontend == f.Name }) {
			t.Fatalf("frontend %s is left over", f.Name)
		}
	}
}

// A rejected Service would not fit with the others on its own, either.
func TestLawRejectedServicesDoNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{Observed: foreign(), SharedPools: []string{"kubernetes"}, MaxRules: rapid.IntRange(0, 9).Draw(t, "most")}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			in.Services = nil
			for _, owner := range rapid.SliceOfNDistinct(rapid.SampledFrom(owners), 1, len(owners), rapid.ID[string]).Draw(t, "due") {
				in.Services = append(in.Services, drawParts(t, owner, 3))
			}
			p := Make(in)
			for refused := range p.Rejected {
				others := in
				others.Services = slices.DeleteFunc(slices.Clone(in.Services), func(s ServiceParts) bool { return s.Owner != refused && p.Rejected[s.Owner] != nil })
				if second := Make(others); len(second.Rejected) == 0 {
					t.Fatalf("%s is refused (%v), and fits", refused, p.Rejected[refused])
				}
			}
			in.Observed = p.Next
		}
	})
}

// A name belongs to the owner it starts with, up to a dash, ignoring case.
func TestLawOwnersOfNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[aA](-?[aAb]){0,3}`)
		var services []ServiceParts
		for range rapid.IntRange(0, 6).Draw(t, "owners") {
			services = append(services, ServiceParts{Owner: word.Draw(t, "owner")})
		}
		name, want := word.Draw(t, "name"), ""
		for _, s := range services {
			if want == "" && hasOwner(s.Owner, name) {
				want = s.Owner
			}
		}
		if got := indexServices(services).ownerOf(name); got != want {
			t.Fatalf("%q is %q's, and not %q's", name, want, got)
		}
	})
}
