// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// flow is the effect of a rule for one source, destination and port.
type flow struct {
	access                              lb.Access
	protocol, source, destination, port string
}

// expandRules expands rules to flows. For managed rules, only destinations accepted by counts.
func expandRules(rules []lb.SecurityRule, counts func(netip.Addr) bool) map[flow]bool {
	flows := map[flow]bool{}
	for _, r := range rules {
		if !isManagedRule(r) {
			continue
		}
		for _, d := range r.Destinations {
			if a, host := parseHost(d); host && counts(a) {
				addFlows(flows, r.Access, r.Protocol, r.Sources, d, r.DestinationPorts)
			}
		}
	}
	return flows
}

func addFlows(flows map[flow]bool, access lb.Access, protocol string, sources []string, destination string, ports []string) {
	for _, source := range sources {
		for _, port := range ports {
			flows[flow{access, protocol, source, destination, port}] = true
		}
	}
}

func desiredFlows(shares []SecurityShare) map[flow]bool {
	flows := map[flow]bool{}
	for _, s := range shares {
		for _, a := range s.AccessRules {
			for _, d := range a.Destinations {
				addFlows(flows, a.Access, a.Protocol, a.Sources, d.String(), a.Ports)
			}
		}
	}
	return flows
}

var (
	fourth = func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("20.0.0.%d", n)) }
	sixth  = func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", n)) }
	theirs = netip.MustParseAddr("20.9.9.9")
)

// drawShare draws a Service's share; several may have the same address.
func drawShare(t *rapid.T, name string) SecurityShare {
	s := SecurityShare{Service: name}
	for range rapid.IntRange(0, 3).Draw(t, name+" admissions") {
		a := AccessRule{Access: lb.Allow, Family: lb.IPv4, Protocol: rapid.SampledFrom([]string{"Tcp", "Udp"}).Draw(t, "protocol")}
		a.Sources = rapid.SampledFrom([][]string{{"Internet"}, {"10.0.0.0/8"}, {"10.0.0.0/8", "192.0.2.0/24"}}).Draw(t, "sources")
		if rapid.IntRange(0, 3).Draw(t, "deny") == 0 {
			a.Access, a.Protocol, a.Sources = lb.Deny, lb.Any, []string{lb.Any}
		}
		a.Ports = rapid.SampledFrom([][]string{{"80"}, {"443", "80"}, {lb.Any}}).Draw(t, "ports")
		at := fourth
		if rapid.Bool().Draw(t, "IPv6") {
			a.Family, at = lb.IPv6, sixth
		}
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 1, 3, rapid.ID[int]).Draw(t, "destinations") {
			a.Destinations = append(a.Destinations, at(n))
		}
		s.AccessRules = append(s.AccessRules, a)
	}
	return s
}

func foreignRules() []lb.SecurityRule {
	rule := func(name string, priority int32, direction lb.Direction) lb.SecurityRule {
		return lb.SecurityRule{
			Name: name, Priority: priority, Direction: direction, Access: lb.Deny, Protocol: "Tcp", Sources: []string{lb.Any},
			SourcePorts: []string{lb.Any}, Destinations: []string{"20.0.0.1"}, DestinationPorts: []string{"80"},
		}
	}
	odd := rule("k8s-azure-lb_odd", 502, lb.Inbound)
	odd.SourcePorts = []string{"53"}
	a := AccessRule{Access: lb.Allow, Family: lb.IPv4, Protocol: "Tcp", Sources: []string{"Internet"}, Ports: []string{"80"}}
	name := new(group).ruleName(a, a.ruleKey())
	return []lb.SecurityRule{
		rule("ssh", 500, lb.Inbound), rule("out", 501, lb.Outbound), odd, rule("last", 4096, lb.Inbound), rule(strings.ToUpper(name), 700, lb.Outbound),
	}
}

// neighborRule returns a managed rule with a destination of another cluster.
func neighborRule() lb.SecurityRule {
	return lb.SecurityRule{
		Name: SecurityRulePrefix + "allow_IPv4_neighbour", Priority: 503, Direction: lb.Inbound, Access: lb.Allow, Protocol: "TCP", Sources: []string{"internet"},
		SourcePorts: []string{lb.Any}, Destinations: []string{theirs.String()}, DestinationPorts: []string{"80"},
	}
}

var services = []string{"a", "b", "c", "d"}

// Property: after any edits, the admitted flows to the cluster's addresses equal the desired ones, nothing
// else changes, and a second plan is empty.
func TestLawRequestedSourcesAreAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := map[netip.Addr]bool{}
		for n := range 6 {
			own[fourth(n)], own[sixth(n)] = true, true
		}
		rules := append(foreignRules(), neighborRule())
		last := map[string]SecurityShare{}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(services), 1, 4, rapid.ID[string]).Draw(t, "edited") {
				last[name] = drawShare(t, name)
			}
			var shares []SecurityShare
			for _, name := range slices.Sorted(maps.Keys(last)) {
				shares = append(shares, last[name])
			}
			shares = rapid.Permutation(shares).Draw(t, "order")
			p := BuildSecurityPlan(SecurityInput{Observed: rules, Shares: shares, Managed: own})
			if len(p.Rejected) > 0 {
				t.Fatalf("refused %v", p.Rejected)
			}
			if diff := cmp.Diff(desiredFlows(shares), normalizeFlows(expandRules(p.Next, func(a netip.Addr) bool { return own[a] }))); diff != "" {
				t.Fatalf("-asked +let in\n%s", diff)
			}
			requireUnchanged(t, rules, p.Next)
			requireDistinct(t, p.Next)
			if second := BuildSecurityPlan(SecurityInput{Observed: p.Next, Shares: rapid.Permutation(shares).Draw(t, "again"), Managed: own}); !second.IsEmpty() || len(second.Next) != len(p.Next) {
				t.Fatalf("again: %+v", second.Changes)
			}
			rules = p.Next
		}
	})
}

// normalizeFlows normalizes the case of the neighbor's rule.
func normalizeFlows(flows map[flow]bool) map[flow]bool {
	next := map[flow]bool{}
	for f := range flows {
		if f.protocol == "TCP" {
			f.protocol, f.source = "Tcp", "Internet"
		}
		next[f] = true
	}
	return next
}

func requireUnchanged(t *rapid.T, before, after []lb.SecurityRule) {
	foreign := func(rules []lb.SecurityRule) (items []lb.SecurityRule) {
		for _, r := range rules {
			if !isManagedRule(r) {
				items = append(items, r)
			}
		}
		return items
	}
	if diff := cmp.Diff(foreign(before), foreign(after)); diff != "" {
		t.Fatalf("foreign rules -before +after\n%s", diff)
	}
	at := func(a netip.Addr) bool { return a == theirs }
	if diff := cmp.Diff(expandRules(before, at), expandRules(after, at)); diff != "" {
		t.Fatalf("the neighbour's -before +after\n%s", diff)
	}
	for _, r := range after { // remaining rules keep name and priority
		at := slices.IndexFunc(before, func(b lb.SecurityRule) bool { return b.Name == r.Name })
		if at >= 0 && before[at].Priority != r.Priority {
			t.Fatalf("%s moved from %d to %d", r.Name, before[at].Priority, r.Priority)
		}
	}
}

func requireDistinct(t *rapid.T, rules []lb.SecurityRule) {
	names, priorities := map[string]bool{}, map[string]bool{}
	for _, r := range rules {
		name, priority := strings.ToLower(r.Name), fmt.Sprint(r.Direction, r.Priority)
		if names[name] || priorities[priority] || r.Priority < 100 || r.Priority > 4096 {
			t.Fatalf("%s at %d is there already", r.Name, r.Priority)
		}
		names[name], priorities[priority] = true, true
		if isManagedRule(r) && len(r.Destinations) == 0 {
			t.Fatalf("%s is empty", r.Name)
		}
	}
}

// Property: a rejected Service is treated like an unknown one, and all others get the same result as then.
func TestLawRejectedRulesAreRetained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := SecurityInput{Managed: map[netip.Addr]bool{}}
		share := func(name string) SecurityShare {
			s := manyRanges(name, rapid.IntRange(1, 4).Draw(t, "at"), rapid.SampledFrom([]int{1, 900, 1100, 3000}).Draw(t, "ranges"))
			for i := range s.AccessRules[0].Sources { // specific to the Service
				s.AccessRules[0].Sources[i] = strings.Replace(s.AccessRules[0].Sources[i], "10.", name[1:]+".", 1)
			}
			return s
		}
		for i := range 5 {
			s := share(fmt.Sprint("s", rapid.IntRange(1, 9).Draw(t, "wish")))
			s.Service = fmt.Sprint("s", i)
			in.Shares = append(in.Shares, s)
			for n := range 5 {
				in.Managed[fourth(n)] = true
			}
		}
		if rapid.Bool().Draw(t, "some are there") {
			before := in
			before.Shares = in.Shares[:2]
			in.Observed = BuildSecurityPlan(before).Next
			in.Shares = append(in.Shares[2:], in.Shares[:rapid.IntRange(0, 2).Draw(t, "known")]...)
		}
		p := BuildSecurityPlan(in)
		held := in
		held.Shares = slices.Clone(in.Shares)
		for i := range held.Shares {
			held.Shares[i].Fixed = p.Rejected[held.Shares[i].Service] != nil
		}
		second := BuildSecurityPlan(held)
		if len(second.Rejected) > 0 || formatRules(second.Next) != formatRules(p.Next) {
			t.Fatalf("refused %v\nheld  %v\ngot\n%.300s\nwant\n%.300s", p.Rejected, second.Rejected, formatRules(p.Next), formatRules(second.Next))
		}
	})
}
