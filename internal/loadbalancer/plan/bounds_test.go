// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func ports(n int) []int32 {
	ports := make([]int32, n)
	for i := range ports {
		ports[i] = int32(i + 1) //nolint:gosec // small
	}
	return ports
}

// inNamespace returns a Service with its own address and n rules; its owner is the namespace and a number.
func inNamespace(namespace string, number, n int) ServiceParts {
	owner := namespace + strconv.Itoa(number)
	s := newTestParts(owner, ports(n)...)
	s.Namespace = namespace
	if n == 0 {
		s = ServiceParts{Owner: owner, Namespace: namespace}
	} else {
		s.Frontends[0].PublicIP = "/pip/" + owner
	}
	return s
}

// shared returns a load balancer with a rule limit; the letters of an owner are its namespace.
func shared(rules int, services ...ServiceParts) Input {
	return Input{
		Observed: lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}, Etag: "1"},
		MaxRules: rules, MaxFrontends: 600, SharedPools: []string{"kubernetes"}, Services: services,
		ServiceOf: func(name string) string {
			owner, _, _ := strings.Cut(name, "-")
			return strings.TrimRight(owner, "0123456789") + "/" + owner
		},
		NamespaceBounds: func(namespace string) service.NamespaceSettings {
			return service.ParseNamespaceSettings(namespace, nil)
		},
	}
}

// with plans the lists of Services in order and returns the last rejections.
func with(in Input, next ...[]ServiceParts) (Input, map[string]error) {
	p := Make(in)
	for _, services := range next {
		in.Observed, in.Services = p.Next, services
		p = Make(in)
	}
	in.Observed = p.Next
	return in, p.Rejected
}

func TestANamespaceIsBounded(t *testing.T) {
	annotated := func(namespace, annotation, value string) func(string) service.NamespaceSettings {
		return func(n string) service.NamespaceSettings {
			if n != namespace {
				return service.ParseNamespaceSettings(n, nil)
			}
			return service.ParseNamespaceSettings(n, map[string]string{annotation: value})
		}
	}
	var frontends []ServiceParts
	for i := range 601 {
		frontends = append(frontends, inNamespace("team", i, 1))
	}
	for _, tt := range []struct {
		about  string
		bounds func(string) service.NamespaceSettings
		steps  [][]ServiceParts
		want   map[string]string // rejections of the last plan, with a part of the reason
	}{
		{about: "two Services with 748 ports, and no neighbor yet", steps: [][]ServiceParts{{inNamespace("team", 1, 748)}, {inNamespace("team", 2, 748)}},
			want: map[string]string{"team2": "1496 load balancing rules in load balancer kubernetes and may have 1350 (default: 150 are reserved for other namespaces, of 1500, the limit of Azure)"}},
		{about: "the neighbor that comes then fits", steps: [][]ServiceParts{{inNamespace("team", 1, 748)}, {inNamespace("team", 2, 600)}, {inNamespace("shop", 1, 150)}}},
		{about: "beside a neighbor", steps: [][]ServiceParts{{inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 748)}, {inNamespace("team", 2, 748)}},
			want: map[string]string{"team2": "may have 750 (default: other namespaces use it, too, so half of 1500, the limit of Azure)"}},
		{about: "all in one plan", steps: [][]ServiceParts{{inNamespace("team", 1, 748), inNamespace("team", 2, 748), inNamespace("shop", 1, 700)}},
			want: map[string]string{"team2": "namespace team would have 1496"}},
		{about: "above the bound: what is there may change", steps: [][]ServiceParts{{inNamespace("team", 1, 1300)}, {inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 1300)}}},
		{about: "above the bound: no more", steps: [][]ServiceParts{{inNamespace("team", 1, 1300)}, {inNamespace("shop", 1, 1)}, {inNamespace("team", 2, 1)}},
			want: map[string]string{"team2": "would have 1301"}},
		{about: "above the bound: fewer, but still above", steps: [][]ServiceParts{{inNamespace("team", 1, 1300)}, {inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 900)}}},
		{about: "below the bound again", steps: [][]ServiceParts{{inNamespace("team", 1, 1300)}, {inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 700)}, {inNamespace("team", 2, 50)}}},
		{about: "a full load balancer names the namespace with the most", steps: [][]ServiceParts{{inNamespace("team", 1, 1350)}, {inNamespace("shop", 1, 151)}},
			want: map[string]string{"shop1": "would have 1501 rules, and may have 1500: namespace team has the most, 1350, and its bound is 750 (default: "}},
		{about: "annotation", bounds: annotated("team", service.MaxRules, "10"), steps: [][]ServiceParts{{inNamespace("team", 1, 11)}},
			want: map[string]string{"team1": "may have 10 (annotation weir.dev/max-rules of Namespace team)"}},
		{about: "annotation of 0", bounds: annotated("team", service.MaxRules, "0"), steps: [][]ServiceParts{{inNamespace("team", 1, 1)}},
			want: map[string]string{"team1": "may have 0 (annotation"}},
		{about: "annotation beyond half", bounds: annotated("team", service.MaxRules, "1400"), steps: [][]ServiceParts{{inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 1400)}}},
		{about: "annotation with an error", bounds: annotated("team", service.MaxRules, "all"), steps: [][]ServiceParts{{inNamespace("shop", 1, 1)}, {inNamespace("team", 1, 751)}},
			want: map[string]string{"team1": `annotation weir.dev/max-rules of Namespace team is "all"`}},
		{about: "annotation on another namespace", bounds: annotated("shop", service.MaxRules, "1"), steps: [][]ServiceParts{{inNamespace("team", 1, 700), inNamespace("shop", 1, 1)}}},
		{about: "frontends, alone", steps: [][]ServiceParts{frontends[:540], frontends[540:541]}, want: map[string]string{"team540": "541 frontends in load balancer kubernetes and may have 540"}},
		{about: "frontends, beside a neighbor", steps: [][]ServiceParts{{inNamespace("shop", 1, 1)}, frontends[:300], frontends[300:301]}, want: map[string]string{"team300": "may have 300"}},
		{about: "frontends, annotation", bounds: annotated("team", service.MaxFrontends, "1"), steps: [][]ServiceParts{frontends[:1], frontends[1:2]},
			want: map[string]string{"team1": "annotation weir.dev/max-frontends of Namespace team"}},
		{about: "more frontends than Azure takes", bounds: annotated("team", service.MaxFrontends, "600"), steps: [][]ServiceParts{{inNamespace("shop", 1, 1)}, frontends[:599], {inNamespace("shop", 2, 1)}},
			want: map[string]string{"shop2": "load balancer kubernetes would have 601 frontends, and may have 600: namespace team has the most, 599, and its bound is 600 (annotation"}},
	} {
		in := shared(1500, tt.steps[0]...)
		if tt.bounds != nil {
			in.NamespaceBounds = tt.bounds
		}
		_, refused := with(in, tt.steps[1:]...)
		for owner, want := range tt.want {
			if refused[owner] == nil || !strings.Contains(refused[owner].Error(), want) {
				t.Errorf("%s: %s: %v, want %q", tt.about, owner, refused[owner], want)
			}
		}
		if len(refused) != len(tt.want) {
			t.Errorf("%s: refused: %v", tt.about, refused)
		}
	}
}

// A Service that shares an address within its namespace adds no frontend.
func TestASharedAddressIsOneFrontend(t *testing.T) {
	single, two := inNamespace("team", 1, 1), inNamespace("team", 2, 2)
	two.Rules, two.Frontends[0].PublicIP = two.Rules[1:], "/pip/team1"
	in := shared(1500, single)
	in.NamespaceBounds = func(n string) service.NamespaceSettings {
		return service.ParseNamespaceSettings(n, map[string]string{service.MaxFrontends: "1"})
	}
	if _, refused := with(in, []ServiceParts{two}); len(refused) > 0 {
		t.Error(refused)
	}
}

// A Service that cannot release its rules, because its new address is taken, frees no capacity for its
// namespace.
func TestRoomIsFreeOnceItIsWritten(t *testing.T) {
	in, _ := with(shared(20, inNamespace("team", 1, 10), inNamespace("shop", 1, 5)))
	moves := inNamespace("team", 1, 1)
	moves.Frontends[0].PublicIP = "/pip/shop1"
	in, refused := with(in, []ServiceParts{moves, inNamespace("team", 2, 9)})
	if refused["team1"] == nil || !errors.Is(refused["team2"], service.ErrBoundExceeded) || usageOf(in)["team"] > 10 {
		t.Errorf("%v, %v", refused, usageOf(in))
	}
}

// A rejection by a bound is not retried when other Services free capacity.
func TestABoundIsNoMatterOfWhatOthersFree(t *testing.T) {
	in, _ := with(shared(20, inNamespace("shop", 0, 1)))
	in.Services = nil
	for i := range 2 { // their port is taken
		s := inNamespace("shop", i+1, 1)
		s.Frontends[0].PublicIP = "/pip/shop0"
		in.Services = append(in.Services, s)
	}
	in.Services = append(in.Services, inNamespace("team", 1, 11))
	if p := Make(in); len(p.Rejected) != 3 || !errors.Is(p.Rejected["team1"], service.ErrBoundExceeded) {
		t.Errorf("refused: %v", p.Rejected)
	}
}

func usageOf(in Input) map[string]int {
	items := map[string]int{}
	for _, r := range in.Observed.Rules {
		items[in.namespaceOf(r.Name)]++
	}
	return items
}

// If the bounds add up to the capacity: a namespace within its bound is never rejected, none exceeds its bound,
// nothing existing is removed, and only the order within a namespace matters.
func TestLawNamespacesDoNotCompete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 12
		namespaces := []string{"a", "b"}
		limits := map[string]int{"a": capacity / 2, "b": capacity / 2}
		in := shared(capacity)
		if rapid.Bool().Draw(t, "annotated") {
			namespaces = []string{"a", "b", "c"}
			limits = map[string]int{"a": rapid.IntRange(0, 6).Draw(t, "a"), "b": rapid.IntRange(0, 4).Draw(t, "b"), "c": 2}
			in.NamespaceBounds = func(n string) service.NamespaceSettings {
				return service.ParseNamespaceSettings(n, map[string]string{service.MaxRules: strconv.Itoa(limits[n])})
			}
		} else { // both use it, so half is the bound of each
			in.Services = []ServiceParts{inNamespace("a", 0, 1), inNamespace("b", 0, 1)}
			in.Observed, in.Services = Make(in).Next, nil
		}
		for range rapid.IntRange(1, 6).Draw(t, "plans") {
			in.Services = nil
			for range rapid.IntRange(1, 8).Draw(t, "due") {
				s := inNamespace(rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.IntRange(1, 4).Draw(t, "number"), rapid.IntRange(0, 7).Draw(t, "rules"))
				if !slices.ContainsFunc(in.Services, func(o ServiceParts) bool { return o.Owner == s.Owner }) {
					in.Services = append(in.Services, s)
				}
			}
			before, wants := usageOf(in), map[string]int{}
			for _, s := range in.Services {
				before := len(slices.DeleteFunc(slices.Clone(in.Observed.Rules), func(r lb.Rule) bool { return !hasOwner(s.Owner, r.Name) }))
				wants[s.Namespace] += max(len(s.Rules)-before, 0)
			}
			p := Make(in)
			served(t, in, p)
			for _, s := range in.Services {
				if reason := p.Rejected[s.Owner]; reason != nil && before[s.Namespace]+wants[s.Namespace] <= limits[s.Namespace] {
					t.Fatalf("%s is within its bound and refused: %v", s.Owner, reason)
				}
			}
			sorted := in
			sorted.Services = slices.Clone(in.Services)
			slices.SortStableFunc(sorted.Services, func(a, b ServiceParts) int { return strings.Compare(b.Namespace, a.Namespace) })
			if got := slices.Sorted(maps.Keys(Make(sorted).Rejected)); !slices.Equal(got, slices.Sorted(maps.Keys(p.Rejected))) {
				t.Fatalf("refused %v, and in another order of namespaces %v", p.Rejected, got)
			}
			in.Observed = p.Next
			for namespace, n := range usageOf(in) {
				if n > max(limits[namespace], before[namespace]) {
					t.Fatalf("namespace %s went from %d to %d rules beyond its bound of %d", namespace, before[namespace], n, limits[namespace])
				}
			}
			if len(in.Observed.Rules) > capacity {
				t.Fatalf("%d rules", len(in.Observed.Rules))
			}
		}
	})
}

// However many Services compete for the last rules, the plan never exceeds the limit: Azure would reject the
// write for all.
func TestLawAPlanFitsTheLoadBalancer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := shared(8)
		in.NamespaceBounds = nil
		for range rapid.IntRange(1, 6).Draw(t, "plans") {
			in.Services = nil
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 1, 5, rapid.ID[int]).Draw(t, "due") {
				in.Services = append(in.Services, inNamespace("a", i, rapid.IntRange(0, 6).Draw(t, fmt.Sprint("rules of ", i))))
			}
			if in.Observed = Make(in).Next; len(in.Observed.Rules) > 8 {
				t.Fatalf("%d rules", len(in.Observed.Rules))
			}
		}
	})
}
