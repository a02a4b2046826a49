// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

func teamSelector(name string) Selector {
	return func(labels map[string]string) bool { return labels["team"] == name }
}

func TestPlace(t *testing.T) {
	plain := []Configuration{{Name: "kubernetes"}, {Name: "lb-1"}, {Name: "lb-2"}}
	rules := func(n int) Spec { return Spec{Rules: make([]lb.Rule, n)} }
	shop := map[string]string{"team": "shop"}
	six := Spec{Frontends: []Frontend{{Frontend: lb.Frontend{Family: lb.IPv6}}}}
	both := Spec{Frontends: []Frontend{{Frontend: lb.Frontend{Family: lb.IPv6}}, {Frontend: lb.Frontend{Family: lb.IPv4}}}}
	beside := map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 3, HasFrontend: true}, "lb-1": {Exists: true}, "lb-2": {Exists: true, Rules: 5, HasFrontend: true}}
	tests := []struct {
		about          string
		c              Candidate
		configurations []Configuration
		occupied       map[string]LoadBalancerUsage
		mostRules      int
		want           string
	}{
		{"stays where it is, however full", Candidate{Current: "lb-1", Desired: rules(2)}, plain, map[string]LoadBalancerUsage{"lb-1": {Exists: true, Rules: 250}}, 250, "lb-1"},
		{"one that is there and empty", Candidate{}, plain, map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 3}, "lb-2": {Exists: true, Rules: 0}}, 0, "lb-2"},
		{"then one to be made", Candidate{}, plain, map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 3}, "lb-2": {Exists: true, Rules: 1}}, 0, "lb-1"},
		{"then the one with the fewest rules", Candidate{}, plain, map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 3}, "lb-1": {Exists: true, Rules: 2}, "lb-2": {Exists: true, Rules: 5}}, 0, "lb-1"},
		{"of several the first", Candidate{}, plain, nil, 0, "kubernetes"},
		{"one where its rules fit", Candidate{Desired: rules(2)}, plain, map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 249}, "lb-1": {Exists: true, Rules: 250}, "lb-2": {Exists: true, Rules: 248}}, 250, "lb-2"},
		{"not where its namespace has enough", Candidate{Desired: rules(2)}, plain[:2],
			map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Exceeded: errors.New("enough")}, "lb-1": {Exists: true, Rules: 20}}, 250, "lb-1"},
		{"its namespace has enough everywhere", Candidate{Desired: rules(2)}, plain[:1],
			map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 9, Exceeded: errors.New("enough")}}, 250,
			"error: enough (the same is true of each load balancer where the Service may be: kubernetes)"},
		{"but it stays where it is", Candidate{Current: "kubernetes", Desired: rules(2)}, plain[:2],
			map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Exceeded: errors.New("enough")}}, 250, "kubernetes"},
		{"with IPv6 alone beside others", Candidate{Desired: six}, plain, beside, 0, "kubernetes"},
		{"and not where nobody is yet", Candidate{Desired: six, Current: "lb-1"}, plain, beside, 0, "kubernetes"},
		{"it stays beside others", Candidate{Desired: six, Current: "lb-2"}, plain, beside, 0, "lb-2"},
		{"nobody is anywhere", Candidate{Desired: six, Current: "lb-1"}, plain, nil, 0, "lb-1"},
		{"with both families anywhere", Candidate{Desired: both}, plain, beside, 0, "lb-1"},
		{"nowhere", Candidate{Desired: rules(2)}, plain[:1], map[string]LoadBalancerUsage{"kubernetes": {Exists: true, Rules: 249}}, 250, "error: 2 more rules fit on none"},
		{"where the annotation says", Candidate{Desired: Spec{Configurations: []string{"LB-1"}}}, plain, nil, 0, "lb-1"},
		{"moves when the annotation says so", Candidate{Current: "kubernetes", Desired: Spec{Configurations: []string{"lb-1", "lb-2"}}}, plain, nil, 0, "lb-1"},
		{"an annotation that names none", Candidate{Desired: Spec{Configurations: []string{"lb-9"}}}, plain, nil, 0, `error: ` + Configurations + ` is "lb-9": want names of multipleStandardLoadBalancerConfigurations: kubernetes, lb-1, lb-2`},
		{"not where no more may come", Candidate{}, []Configuration{{Name: "kubernetes", Closed: true}, {Name: "lb-1"}}, nil, 0, "lb-1"},
		{"but stays there", Candidate{Current: "kubernetes"}, []Configuration{{Name: "kubernetes", Closed: true}, {Name: "lb-1"}}, nil, 0, "kubernetes"},
		{"all closed", Candidate{}, []Configuration{{Name: "kubernetes", Closed: true}}, nil, 0, "error: kubernetes accepts no further Services"},
		{"where a selector wants it", Candidate{Labels: shop}, []Configuration{{Name: "kubernetes"}, {Name: "lb-1", Services: teamSelector("shop")}}, nil, 0, "lb-1"},
		{"moves when its labels say so", Candidate{Labels: shop, Current: "kubernetes"}, []Configuration{{Name: "kubernetes"}, {Name: "lb-1", Services: teamSelector("shop")}}, nil, 0, "lb-1"},
		{"not where one wants others", Candidate{}, []Configuration{{Name: "lb-1", Services: teamSelector("shop")}, {Name: "kubernetes"}}, nil, 0, "kubernetes"},
		{"by its namespace", Candidate{NamespaceLabels: shop}, []Configuration{{Name: "kubernetes"}, {Name: "lb-1", Namespaces: teamSelector("shop")}}, nil, 0, "lb-1"},
		{"both selectors have to match", Candidate{Labels: shop}, []Configuration{{Name: "kubernetes"}, {Name: "lb-1", Services: teamSelector("shop"), Namespaces: teamSelector("shop")}}, nil, 0, "kubernetes"},
		{"no selector wants it", Candidate{}, []Configuration{{Name: "kubernetes", Services: teamSelector("shop")}}, nil, 0, "error: the labels"},
		{"where its address is", Candidate{RequestedConfiguration: "lb-2", Current: "kubernetes"}, plain, nil, 0, "lb-2"},
		{"its address is where it may not be", Candidate{RequestedConfiguration: "lb-2", Desired: Spec{Configurations: []string{"lb-1"}}}, plain, nil, 0, "error: the address is on load balancer lb-2"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			got, err := ChooseConfiguration(tt.c, tt.configurations, tt.occupied, tt.mostRules)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPlaceNodes(t *testing.T) {
	configurations := []Configuration{
		{Name: "kubernetes", PrimaryVMSet: "as-0"}, {Name: "lb-1"}, {Name: "lb-2", Nodes: teamSelector("shop")},
	}
	got := PlaceNodes([]Node{
		{Name: "in the set", VMSet: "AS-0"},
		{Name: "by its labels", Labels: map[string]string{"team": "shop"}},
		{Name: "the set goes first", VMSet: "as-0", Labels: map[string]string{"team": "shop"}},
		{Name: "placed before", Previous: "kubernetes"},
		{Name: "placed where it may not be", Previous: "lb-2"},
		{Name: "free"},
	}, configurations)
	want := map[string]string{
		"in the set": "kubernetes", "by its labels": "lb-2", "the set goes first": "kubernetes",
		"placed before": "kubernetes", "placed where it may not be": "lb-1", "free": "lb-1",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := PlaceNodes([]Node{{Name: "n"}}, configurations[2:]); len(got) != 0 {
		t.Errorf("placed %v although no configuration may have it", got)
	}
}

// Property: adding or removing a node moves no other, and nodes are balanced.
func TestLawNodesStay(t *testing.T) {
	configurations := []Configuration{{Name: "kubernetes"}, {Name: "lb-1"}, {Name: "lb-2", Nodes: teamSelector("shop")}}
	rapid.Check(t, func(t *rapid.T) {
		nodes := map[string]Node{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := fmt.Sprint("n", rapid.IntRange(1, 8).Draw(t, "node"))
			if _, ok := nodes[name]; ok && rapid.Bool().Draw(t, "goes") {
				delete(nodes, name)
			} else if !ok {
				nodes[name] = Node{Name: name, Labels: map[string]string{"team": rapid.SampledFrom([]string{"shop", ""}).Draw(t, "team")}}
			}
			var list []Node
			for _, n := range nodes {
				list = append(list, n)
			}
			placed := PlaceNodes(list, configurations)
			if len(placed) != len(nodes) {
				t.Fatalf("%d of %d nodes are placed", len(placed), len(nodes))
			}
			for name, n := range nodes {
				if n.Previous != "" && placed[name] != n.Previous {
					t.Fatalf("%s moved from %s to %s", name, n.Previous, placed[name])
				}
				n.Previous = placed[name]
				nodes[name] = n
			}
		}
	})
}

func TestConfigurationOf(t *testing.T) {
	configurations := []Configuration{{Name: "kubernetes"}, {Name: "LB-2"}}
	for name, want := range map[string]string{
		"kubernetes": "kubernetes", "Kubernetes-Internal": "kubernetes", "lb-2": "LB-2", "lb-2-internal": "LB-2",
		"lb-2-internal-internal": "", "lb": "", "": "",
	} {
		if got, ok := ConfigurationOf(name, configurations); got.Name != want || ok != (want != "") {
			t.Errorf("%q is of %q, %v; want %q", name, got.Name, ok, want)
		}
		if got := ConfigurationName(name, configurations); want != "" && got != want {
			t.Errorf("%q is of %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"Other": "other", "OTHER-internal": "other", "lb": "lb"} {
		if got := ConfigurationName(name, configurations); got != want {
			t.Errorf("%q, which is none of them, is of %q, want %q", name, got, want)
		}
	}
}

// PlaceOf agrees with PlaceNodes.
func TestPlaceOf(t *testing.T) {
	configurations := []Configuration{{Name: "kubernetes", PrimaryVMSet: "a"}, {Name: "lb-1", Nodes: teamSelector("shop")}, {Name: "lb-2"}}
	shop := map[string]string{"team": "shop"}
	for _, tt := range []struct {
		about string
		n     Node
		want  string
	}{
		{"its set", Node{VMSet: "A", Labels: shop, Previous: "lb-2"}, "kubernetes"},
		{"a selector", Node{Labels: shop, Previous: "lb-2"}, "lb-1"},
		{"where it is", Node{VMSet: "b", Previous: "lb-2"}, "lb-2"},
		{"not where only others may be", Node{Previous: "lb-1"}, ""},
		{"nothing says", Node{}, ""},
	} {
		n := tt.n
		n.Name = "n"
		if got := PlaceOf(n, configurations); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.about, got, tt.want)
		}
		if got := PlaceNodes([]Node{n, {Name: "m"}}, configurations)["n"]; tt.want != "" && got != tt.want {
			t.Errorf("%s: beside another %q, want %q", tt.about, got, tt.want)
		}
	}
}
