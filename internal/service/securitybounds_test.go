// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// taggedShare returns a Service with an address of its own and a number of service tags, named after namespace and
// number.
func taggedShare(namespace string, number, tags int) SecurityShare {
	name := namespace + strconv.Itoa(number)
	at := []netip.Addr{numberedAddress(namespace[0], number)}
	s := SecurityShare{Service: name, Namespace: namespace, Places: []SecurityPlace{{Addresses: at}}}
	for n := range tags {
		s.AccessRules = append(s.AccessRules, AccessRule{
			Access: lb.Allow, Family: lb.IPv4, Protocol: "Tcp", Sources: []string{fmt.Sprint("T-", name, "-", n)}, Destinations: at, Ports: []string{"80"},
		})
	}
	return s
}

func withOtherTags(s SecurityShare) SecurityShare {
	for i := range s.AccessRules {
		s.AccessRules[i].Sources = []string{"U" + s.AccessRules[i].Sources[0]}
	}
	return s
}

func rangedShare(namespace string, number, ranges int) SecurityShare {
	s := taggedShare(namespace, number, 1)
	s.AccessRules[0].Sources = nil
	for n := range ranges {
		s.AccessRules[0].Sources = append(s.AccessRules[0].Sources, numberedAddress(30, n).String()+"/32")
	}
	return s
}

func limitsOf(annotations map[string]string) func(string) NamespaceSettings {
	return func(n string) NamespaceSettings {
		if value, ok := annotations[n]; ok {
			return ParseNamespaceSettings(n, map[string]string{MaxSecurityRules: value})
		}
		return ParseNamespaceSettings(n, nil)
	}
}

// inputOf returns an Input in which all addresses are the cluster's.
func inputOf(observed []lb.SecurityRule, bounds func(string) NamespaceSettings, shares ...SecurityShare) SecurityInput {
	in := SecurityInput{Observed: observed, Shares: shares, Managed: map[netip.Addr]bool{}, Limits: bounds}
	for _, s := range shares {
		for _, p := range s.Places {
			for _, a := range p.Addresses {
				in.Managed[a] = true
			}
		}
	}
	return in
}

func TestANamespaceIsBounded(t *testing.T) {
	for _, tt := range []struct {
		about       string
		annotations map[string]string
		steps       [][]SecurityShare
		want        map[string]string // rejected by the last plan, with a part of the reason
	}{
		{about: "1,000 service tags, and no neighbor yet", steps: [][]SecurityShare{{taggedShare("team", 1, 1000)}},
			want: map[string]string{"team1": "namespace team would have 1000 rules in the security group and may have 900 (default: 100 are reserved"}},
		{about: "the neighbor that comes then fits", steps: [][]SecurityShare{{taggedShare("team", 1, 900)}, {taggedShare("team", 1, 900), taggedShare("shop", 1, 100)}}},
		{about: "1,000 service tags beside a neighbor", steps: [][]SecurityShare{{taggedShare("shop", 1, 1)}, {taggedShare("shop", 1, 1), taggedShare("team", 1, 1000)}},
			want: map[string]string{"team1": "may have 500 (default: other namespaces use it, too, so half of 1000, the limit of Azure)"}},
		{about: "in one plan with the neighbor", steps: [][]SecurityShare{{taggedShare("team", 1, 501), taggedShare("shop", 1, 500)}}, want: map[string]string{"team1": "may have 500"}},
		{about: "two Services with 300 tags", steps: [][]SecurityShare{{taggedShare("shop", 1, 1), taggedShare("team", 1, 300), taggedShare("team", 2, 300)}}, want: map[string]string{"team2": "would have 600"}},
		{about: "above the bound: other tags, as many", steps: [][]SecurityShare{{taggedShare("team", 1, 900)}, {taggedShare("shop", 1, 1), taggedShare("team", 1, 900)}, {taggedShare("shop", 1, 1), rangedShare("team", 1, 1)}}},
		{about: "above the bound: each rule another one", steps: [][]SecurityShare{{taggedShare("team", 1, 900)}, {taggedShare("shop", 1, 1), withOtherTags(taggedShare("team", 1, 900))}}},
		{about: "above the bound: no more", steps: [][]SecurityShare{{taggedShare("team", 1, 900)}, {taggedShare("shop", 1, 1), taggedShare("team", 1, 900), taggedShare("team", 2, 1)}}, want: map[string]string{"team2": "would have 901"}},
		{about: "annotation", annotations: map[string]string{"team": "3"}, steps: [][]SecurityShare{{taggedShare("team", 1, 4)}},
			want: map[string]string{"team1": "may have 3 (annotation weir.dev/max-security-rules of Namespace team)"}},
		{about: "annotation with an error", annotations: map[string]string{"team": "many"}, steps: [][]SecurityShare{{taggedShare("shop", 1, 1), taggedShare("team", 1, 501)}},
			want: map[string]string{"team1": `annotation weir.dev/max-security-rules of Namespace team is "many"`}},
		{about: "source ranges, alone", steps: [][]SecurityShare{{rangedShare("team", 1, 3601)}}, want: map[string]string{"team1": "3601 addresses and ranges as sources of rules in the security group and may have 3600"}},
		{about: "source ranges beside a neighbor", steps: [][]SecurityShare{{taggedShare("shop", 1, 1), rangedShare("team", 1, 2001)}}, want: map[string]string{"team1": "may have 2000"}},
		{about: "source ranges, annotation", annotations: map[string]string{"team": "750"}, steps: [][]SecurityShare{{taggedShare("shop", 1, 1), rangedShare("team", 1, 3000)}}},
		{about: "a rule that namespaces share counts for each", annotations: map[string]string{"a": "1", "b": "0"}, steps: [][]SecurityShare{{publicShare("a"), publicShare("b")}},
			want: map[string]string{"b": "may have 0"}},
		{about: "one rule for many Services", annotations: map[string]string{"a": "1"}, steps: [][]SecurityShare{{publicShare("a"), publicShare("a")}}},
	} {
		var observed []lb.SecurityRule
		var p SecurityPlan
		for _, shares := range tt.steps {
			p = BuildSecurityPlan(inputOf(observed, limitsOf(tt.annotations), shares...))
			observed = p.Next
		}
		for service, want := range tt.want {
			if p.Rejected[service] == nil || !strings.Contains(p.Rejected[service].Error(), want) {
				t.Errorf("%s: %s: %v, want %q", tt.about, service, p.Rejected[service], want)
			}
		}
		if len(p.Rejected) != len(tt.want) {
			t.Errorf("%s: refused: %v", tt.about, p.Rejected)
		}
	}
}

// publicShare returns a Service open to the Internet; all of these share a rule.
func publicShare(namespace string) SecurityShare {
	s := newShare(namespace, int(namespace[0]))
	s.Namespace = namespace
	return s
}

// Unknown Services count by the existing rules, including those at node ports.
func TestExistingRulesCount(t *testing.T) {
	node := numberedAddress(10, 1)
	var observed []lb.SecurityRule
	for i := range 3 {
		r := newManagedRule(fmt.Sprint("allow_IPv4_", i), int32(500+i), node.String()) //nolint:gosec // small
		r.DestinationPorts, r.Sources = []string{"30080"}, []string{fmt.Sprint("T", i)}
		observed = append(observed, r)
	}
	unknown := SecurityShare{Service: "team1", Namespace: "team", Fixed: true, NodePorts: []int32{30080}}
	at := SecurityShare{Fixed: true, Places: []SecurityPlace{{Addresses: []netip.Addr{node}, Ports: []int32{30080}}}}
	in := inputOf(observed, limitsOf(map[string]string{"team": "4"}), unknown, at, taggedShare("team", 2, 2))
	if p := BuildSecurityPlan(in); p.Rejected["team2"] == nil || !strings.Contains(p.Rejected["team2"].Error(), "would have 5 rules") {
		t.Errorf("refused: %v", p.Rejected)
	}
}

// rulesOf returns the number of rules with a destination per namespace.
func rulesOf(rules []lb.SecurityRule, of map[netip.Addr]string) map[string]int {
	items := map[string]int{}
	for _, r := range rules {
		own := map[string]bool{}
		for _, d := range r.Destinations {
			a, _ := parseHost(d)
			own[of[a]] = true
		}
		for namespace := range own {
			items[namespace]++
		}
	}
	return items
}

// Property: if the limits add up to the group's capacity, a namespace within its limit is never rejected,
// whatever others request; none exceeds its limit; nothing existing is removed for others; the order does not
// matter; and the plan accepts what Admits accepted.
func TestLawNamespacesDoNotCompete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := map[string]int{"a": rapid.IntRange(0, 5).Draw(t, "a"), "b": rapid.IntRange(0, 5).Draw(t, "b")}
		annotations := map[string]string{"a": strconv.Itoa(limits["a"]), "b": strconv.Itoa(limits["b"])}
		var observed []lb.SecurityRule
		wants := map[string]SecurityShare{}
		of := map[netip.Addr]string{}
		for range rapid.IntRange(1, 6).Draw(t, "plans") {
			before := maps.Clone(wants)
			old := rulesOf(observed, of)
			usage := ObservedSecurityUsage(inputOf(observed, nil, slices.Collect(maps.Values(wants))...))
			promised := map[string]SecurityClaim{}
			var due []string
			for range rapid.IntRange(1, 4).Draw(t, "due") {
				s := taggedShare(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), rapid.IntRange(1, 3).Draw(t, "number"), rapid.IntRange(0, 4).Draw(t, "tags"))
				of[s.Places[0].Addresses[0]] = s.Namespace
				if rapid.Bool().Draw(t, "other tags") {
					s = withOtherTags(s)
				}
				if !slices.Contains(due, s.Service) {
					due = append(due, s.Service)
					wants[s.Service] = s
					claim := NewSecurityClaim(s.Namespace, s.AccessRules)
					if usage.CheckClaim(s.Service, claim, promised, limitsOf(annotations)(s.Namespace)) == nil {
						promised[s.Service] = claim
					}
				}
			}
			shares := func(order func(a, b string) int) []SecurityShare {
				var shares []SecurityShare
				for _, name := range slices.Sorted(maps.Keys(wants)) {
					if !slices.Contains(due, name) {
						shares = append(shares, wants[name])
					}
				}
				sorted := slices.Clone(due)
				slices.SortStableFunc(sorted, order)
				for _, name := range sorted {
					shares = append(shares, wants[name])
				}
				return shares
			}
			p := BuildSecurityPlan(inputOf(observed, limitsOf(annotations), shares(func(string, string) int { return 0 })...))
			other := BuildSecurityPlan(inputOf(observed, limitsOf(annotations), shares(func(a, b string) int { return strings.Compare(b[:1], a[:1]) })...))
			if got, want := slices.Sorted(maps.Keys(other.Rejected)), slices.Sorted(maps.Keys(p.Rejected)); !slices.Equal(got, want) {
				t.Fatalf("refused %v, and in another order of namespaces %v", want, got)
			}
			kept := maps.Clone(before)
			for name := range promised {
				kept[name] = wants[name]
			}
			if all := BuildSecurityPlan(inputOf(observed, limitsOf(annotations), slices.Collect(maps.Values(kept))...)); len(all.Rejected) > 0 {
				t.Fatalf("promised, and refused: %v", all.Rejected)
			}
			demand := map[string]int{}
			for _, s := range wants {
				demand[s.Namespace] += len(s.AccessRules)
			}
			for name, reason := range p.Rejected {
				if !errors.Is(reason, ErrBoundExceeded) || demand[wants[name].Namespace] <= limits[wants[name].Namespace] {
					t.Fatalf("%s: %v", name, reason)
				}
			}
			for name := range p.Rejected { // existing usage remains
				wants[name] = before[name]
				if wants[name].Service == "" {
					delete(wants, name)
				}
			}
			observed = p.Next
			present := rulesOf(observed, of)
			for namespace, n := range present {
				if n > max(limits[namespace], old[namespace]) {
					t.Fatalf("namespace %s went from %d to %d rules beyond its bound of %d", namespace, old[namespace], n, limits[namespace])
				}
			}
			for _, s := range wants {
				n := 0
				for _, r := range observed {
					if slices.Contains(r.Destinations, s.Places[0].Addresses[0].String()) {
						n++
					}
				}
				if n != len(s.AccessRules) {
					t.Fatalf("%s has %d of %d rules", s.Service, n, len(s.AccessRules))
				}
			}
		}
	})
}

func TestAdmits(t *testing.T) {
	bounds := limitsOf(map[string]string{"limited": "3"})
	observed := BuildSecurityPlan(inputOf(nil, nil, taggedShare("shop", 1, 1), taggedShare("team", 1, 400))).Next
	usage := ObservedSecurityUsage(inputOf(observed, nil, taggedShare("shop", 1, 1), taggedShare("team", 1, 400)))
	claim := func(s SecurityShare) SecurityClaim { return NewSecurityClaim(s.Namespace, s.AccessRules) }
	full := BuildSecurityPlan(inputOf(nil, nil, taggedShare("shop", 1, 1), taggedShare("team", 1, 999)))
	for _, tt := range []struct {
		about    string
		usage    *SecurityUsage
		service  SecurityShare
		promised map[string]SecurityClaim
		want     string
	}{
		{about: "within the bound", service: taggedShare("team", 2, 100)},
		{about: "beyond the bound", service: taggedShare("team", 2, 101), want: "would have 501 rules"},
		{about: "the same again", service: taggedShare("team", 1, 400)},
		{about: "instead of its own", service: rangedShare("team", 1, 1)},
		{about: "more than its own", service: taggedShare("team", 1, 501), want: "would have 501 rules"},
		{about: "beside a promise", service: taggedShare("team", 2, 60), promised: map[string]SecurityClaim{"team3": claim(taggedShare("team", 3, 60))}, want: "would have 520 rules"},
		{about: "a promise to itself does not count", service: taggedShare("team", 2, 60), promised: map[string]SecurityClaim{"team2": claim(taggedShare("team", 2, 60))}},
		{about: "a promise to another namespace does not count", service: taggedShare("team", 2, 60), promised: map[string]SecurityClaim{"shop3": claim(taggedShare("shop", 3, 300))}},
		{about: "annotation", service: taggedShare("limited", 1, 4), want: "may have 3 (annotation"},
		{about: "a full group", usage: full.After, service: taggedShare("late", 1, 1), want: "it would have 1001 rules, and Azure allows 1000"},
		{about: "a full group, nothing more", usage: full.After, service: taggedShare("team", 1, 999)},
	} {
		u := tt.usage
		if u == nil {
			u = usage
		}
		err := u.CheckClaim(tt.service.Service, claim(tt.service), tt.promised, bounds(tt.service.Namespace))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.about, err, tt.want)
		}
	}
}

// A second namespace may appear between the check of a Service and the write of its rules, which halves its
// limit. Its load balancer may already be written, so its rules are written too.
func TestAPromiseIsKept(t *testing.T) {
	promise := func(s SecurityShare) map[string]SecurityClaim {
		return map[string]SecurityClaim{s.Service: NewSecurityClaim(s.Namespace, s.AccessRules)}
	}
	for _, tt := range []struct {
		about    string
		service  SecurityShare
		promised map[string]SecurityClaim
		refused  bool
	}{
		{"no promise", taggedShare("team", 1, 700), nil, true},
		{"a promise", taggedShare("team", 1, 700), promise(taggedShare("team", 1, 700)), false},
		{"fewer than promised", taggedShare("team", 1, 600), promise(taggedShare("team", 1, 700)), false},
		{"more than promised", taggedShare("team", 1, 701), promise(taggedShare("team", 1, 700)), true},
		{"other rules than promised", withOtherTags(taggedShare("team", 1, 700)), promise(taggedShare("team", 1, 700)), true},
		{"a promise to another Service", taggedShare("team", 1, 700), promise(taggedShare("team", 2, 700)), true},
		{"beyond the group", taggedShare("team", 1, 1000), promise(taggedShare("team", 1, 1000)), true},
	} {
		in := inputOf(nil, limitsOf(nil), taggedShare("shop", 1, 2), tt.service)
		in.Claims = tt.promised
		p := BuildSecurityPlan(in)
		if (p.Rejected["team1"] != nil) != tt.refused || p.Rejected["shop1"] != nil {
			t.Errorf("%s: refused %v", tt.about, p.Rejected)
		}
	}
}
