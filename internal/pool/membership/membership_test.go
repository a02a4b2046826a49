// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// cluster is a node list with the lookup for OfService.
type cluster []membership.Node

func (c cluster) findNode(name string) (membership.Node, bool) {
	i := slices.IndexFunc(c, func(n membership.Node) bool { return n.Name == name })
	if i < 0 {
		return membership.Node{}, false
	}
	return c[i], true
}

func newNode(name string, ips ...string) membership.Node {
	n := membership.Node{Name: name}
	for _, ip := range ips {
		n.IPs = append(n.IPs, netip.MustParseAddr(ip))
	}
	return n
}

func newSlice(family lb.Family, endpoints ...membership.Endpoint) membership.Slice {
	return membership.Slice{Family: family, Endpoints: endpoints}
}

func readyOn(node string) membership.Endpoint {
	return membership.Endpoint{Node: node, Ready: true, Serving: true}
}
func notReady(node string) membership.Endpoint { return membership.Endpoint{Node: node} }
func servingTerminating(node string) membership.Endpoint {
	return membership.Endpoint{Node: node, Serving: true, Terminating: true}
}
func terminatingOn(node string) membership.Endpoint {
	return membership.Endpoint{Node: node, Terminating: true}
}

// formatMembers formats a set as "n1=10.0.0.1 n2=10.0.0.2 | absent: …".
func formatMembers(s membership.Set) string {
	var parts []string
	for _, a := range s.Addresses {
		parts = append(parts, a.Name+"="+a.IP.String())
	}
	for _, a := range s.NonMembers {
		parts = append(parts, "| "+a.String())
	}
	if s.EndpointsWithoutNode > 0 {
		parts = append(parts, fmt.Sprintf("| %d without node", s.EndpointsWithoutNode))
	}
	if s.UnsupportedSlices > 0 {
		parts = append(parts, fmt.Sprintf("| %d unfit", s.UnsupportedSlices))
	}
	return strings.Join(parts, " ")
}

func TestOfService(t *testing.T) {
	nodes := cluster{
		newNode("n1", "10.0.0.1", "fd00::1"), newNode("n2", "10.0.0.2"), newNode("n3"),
		{Name: "n4", IPs: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, Excluded: "it is labelled so"},
		newNode("n5", "10.0.0.1"),
	}
	tests := []struct {
		name   string
		slices []membership.Slice
		family lb.Family
		want   string
	}{
		{"no slice means nobody, never everybody", nil, lb.IPv4, ""},
		{"a node is a member while any slice of the Service has an endpoint on it",
			[]membership.Slice{newSlice(lb.IPv4, readyOn("n1")), newSlice(lb.IPv4, notReady("n1"), readyOn("n2"))}, lb.IPv4, "n1=10.0.0.1 n2=10.0.0.2"},
		{"many endpoints on a node are one address", []membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n1")), newSlice(lb.IPv4, readyOn("n1"))}, lb.IPv4, "n1=10.0.0.1"},
		{"an endpoint that is not ready keeps no node in the pool", []membership.Slice{newSlice(lb.IPv4, notReady("n1"), readyOn("n2"))}, lb.IPv4, "n2=10.0.0.2"},
		{"one that is terminating and still serving does", []membership.Slice{newSlice(lb.IPv4, servingTerminating("n1"))}, lb.IPv4, "n1=10.0.0.1"},
		{"one that is terminating and serves no more does not", []membership.Slice{newSlice(lb.IPv4, terminatingOn("n1"))}, lb.IPv4, ""},
		{"families do not mix", []membership.Slice{newSlice(lb.IPv4, readyOn("n2")), newSlice(lb.IPv6, readyOn("n1"))}, lb.IPv6, "n1=fd00::1"},
		{"a node without an address of the family is named", []membership.Slice{newSlice(lb.IPv6, readyOn("n2"))}, lb.IPv6, "| node n2: it has no InternalIP of family IPv6"},
		{"a node without any address is named", []membership.Slice{newSlice(lb.IPv4, readyOn("n3"))}, lb.IPv4, "| node n3: it has no InternalIP of family IPv4"},
		{"excluded nodes never", []membership.Slice{newSlice(lb.IPv4, readyOn("n4"))}, lb.IPv4, "| node n4: it is labelled so"},
		{"a node that is not there yet is named", []membership.Slice{newSlice(lb.IPv4, readyOn("n9"))}, lb.IPv4, "| node n9: the cluster has no node of that name yet"},
		{"two nodes with one address are one member", []membership.Slice{newSlice(lb.IPv4, readyOn("n5"), readyOn("n1"))}, lb.IPv4, "n1=10.0.0.1 | node n5: its address 10.0.0.1 is also that of node n1"},
		{"endpoints without node are counted", []membership.Slice{newSlice(lb.IPv4, readyOn(""), readyOn(""), notReady(""))}, lb.IPv4, "| 2 without node"},
		{"FQDN slices are counted and ignored", []membership.Slice{newSlice("", readyOn("n1"))}, lb.IPv4, "| 1 unfit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := formatMembers(membership.OfService(tt.slices, nodes.findNode, tt.family)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestOfNodes(t *testing.T) {
	nodes := cluster{newNode("b", "10.0.0.2"), newNode("a", "10.0.0.1"), {Name: "c", Excluded: "no"}}
	want := "a=10.0.0.1 b=10.0.0.2 | node c: no"
	set := membership.OfNodes(slices.Values(nodes), lb.IPv4)
	if got := formatMembers(set); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if whole := func(text string, _ int) string { return text }; len(set.DescribeExcluded()) != 1 || len(set.DescribeMissing(5, 0, whole)) != 0 {
		t.Errorf("not kept out by a label: %v", set.NonMembers)
	}
}

// A draining node remains a member and must be Down; the end of the drain changes the fingerprint.
func TestANodeThatDrainsIsToBeDown(t *testing.T) {
	leaving := newNode("b", "10.0.0.2", "fd00::2")
	leaving.DrainReason = "out-of-service"
	excluded := membership.Node{Name: "c", Excluded: "no", DrainReason: "out-of-service"}
	nodes := cluster{newNode("a", "10.0.0.1"), leaving, excluded}
	set := membership.OfNodes(slices.Values(nodes), lb.IPv4)
	if formatMembers(set) != "a=10.0.0.1 b=10.0.0.2 | node c: no" || set.Addresses[0].AdminState != "" || set.Addresses[1].AdminState != lb.Down {
		t.Errorf("got %+v", set)
	}
	if want := (membership.Drain{Node: "b", IP: leaving.IPs[0], Reason: "out-of-service"}); !slices.Equal(set.Draining, []membership.Drain{want}) {
		t.Errorf("draining: %+v", set.Draining)
	}
	for before, state := range map[string]string{"None": lb.None, "nothing": ""} {
		back := slices.Clone(set.Addresses)
		back[1].AdminState = state
		if membership.Fingerprint(back) == membership.Fingerprint(set.Addresses) {
			t.Errorf("Down and %s have one fingerprint", before)
		}
	}
}

func TestExcluded(t *testing.T) {
	tests := []struct {
		labels       map[string]string
		controlPlane bool
		excluded     bool
	}{
		{nil, true, false},
		{map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": ""}, false, true},
		{map[string]string{"kubernetes.azure.com/managed": "False"}, false, true},
		{map[string]string{"kubernetes.azure.com/managed": "true"}, true, false},
		{map[string]string{"node-role.kubernetes.io/control-plane": ""}, true, true},
		{map[string]string{"node-role.kubernetes.io/control-plane": ""}, false, false},
		{map[string]string{"node-role.kubernetes.io/master": "true"}, true, true},
		{map[string]string{"kubernetes.io/role": "master"}, true, true},
		{map[string]string{"kubernetes.io/role": "agent"}, true, false},
	}
	for _, tt := range tests {
		if got := membership.Excluded(tt.labels, tt.controlPlane); (got != "") != tt.excluded {
			t.Errorf("Excluded(%v, %v) = %q", tt.labels, tt.controlPlane, got)
		}
	}
}

// The distribution of endpoints over slices and their order do not matter; equal memberships have equal
// fingerprints.
func TestMembershipIgnoresOrderAndSlicing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes cluster
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			nodes = append(nodes, newNode(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.0.%d", i+1)))
		}
		endpoints := rapid.SliceOf(rapid.Custom(func(t *rapid.T) membership.Endpoint {
			return membership.Endpoint{
				Node:  rapid.SampledFrom([]string{"", "n0", "n1", "n2", "n3", "n4", "n5"}).Draw(t, "node"),
				Ready: rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"), Terminating: rapid.Bool().Draw(t, "terminating"),
			}
		})).Draw(t, "endpoints")
		whole := membership.OfService([]membership.Slice{newSlice(lb.IPv4, endpoints...)}, nodes.findNode, lb.IPv4)

		shuffled := rapid.Permutation(endpoints).Draw(t, "order")
		cut := rapid.IntRange(0, len(shuffled)).Draw(t, "cut")
		parts := membership.OfService([]membership.Slice{newSlice(lb.IPv4, shuffled[:cut]...), newSlice(lb.IPv4, shuffled[cut:]...)}, nodes.findNode, lb.IPv4)
		if formatMembers(whole) != formatMembers(parts) {
			t.Fatalf("whole %s\nparts %s", formatMembers(whole), formatMembers(parts))
		}
		if membership.Fingerprint(whole.Addresses) != membership.Fingerprint(parts.Addresses) {
			t.Fatal("equal memberships, different fingerprints")
		}
		if len(whole.Addresses) > 0 && membership.Fingerprint(whole.Addresses) == membership.Fingerprint(whole.Addresses[1:]) {
			t.Fatal("different memberships, equal fingerprints")
		}
	})
}

// BenchmarkOfService: 5,000 endpoints in 50 slices on 500 nodes.
func BenchmarkOfService(b *testing.B) {
	nodes := map[string]membership.Node{}
	for i := range 500 {
		name := fmt.Sprintf("aks-pool-%03d", i)
		nodes[name] = newNode(name, fmt.Sprintf("10.%d.%d.4", i/256, i%256))
	}
	var slcs []membership.Slice
	for s := range 50 {
		var endpoints []membership.Endpoint
		for e := range 100 {
			endpoints = append(endpoints, readyOn(fmt.Sprintf("aks-pool-%03d", (s*100+e)%500)))
		}
		slcs = append(slcs, newSlice(lb.IPv4, endpoints...))
	}
	find := func(name string) (membership.Node, bool) { n, ok := nodes[name]; return n, ok }
	b.ReportAllocs()
	for b.Loop() {
		if set := membership.OfService(slcs, find, lb.IPv4); len(set.Addresses) != 500 {
			b.Fatalf("%d addresses", len(set.Addresses))
		}
	}
}

// states are the state changes of a node; nodes with a shared address change independently.
var states = map[string]func(*membership.Node){
	"ready":     func(*membership.Node) {},
	"leaving":   func(n *membership.Node) { n.DrainReason = "out-of-service" },
	"announced": func(n *membership.Node) { n.DrainReason, n.EvictionAnnounced = "spot-eviction", true },
	"excluded":  func(n *membership.Node) { n.Excluded = "it is labeled so" },
	"no machine": func(n *membership.Node) {
		n.NoMachine, n.MachinePending = "its machine is not known", true
	},
}

// An address is a member while an eligible node has it, and Down while all these nodes drain, in any order.
// Nodes not listed are deleted.
func TestNodesWithOneAddress(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.1")
	names := []string{"a", "b", "c"}
	var nodes func(of []membership.Node, rest []string)
	nodes = func(of []membership.Node, rest []string) {
		assertOneAddress(t, of, ip)
		if len(rest) == 0 {
			return
		}
		for _, state := range slices.Sorted(maps.Keys(states)) {
			n := newNode(rest[0], ip.String())
			states[state](&n)
			nodes(append(slices.Clone(of), n), rest[1:])
		}
		nodes(of, rest[1:]) // deleted
	}
	nodes(nil, names)
}

func assertOneAddress(t *testing.T, nodes []membership.Node, ip netip.Addr) {
	t.Helper()
	candidates, serving, announced := 0, 0, 0
	for _, n := range nodes {
		if n.Excluded == "" && n.NoMachine == "" {
			candidates++
			if n.DrainReason == "" {
				serving++
			}
			if n.EvictionAnnounced {
				announced++
			}
		}
	}
	reversed := slices.Clone(nodes)
	slices.Reverse(reversed)
	if n, ok := membership.PreferredNode(reversed); ok != (len(nodes) > 0) || candidates > 0 && n.Excluded != "" ||
		n.Excluded == "" && n.DrainReason != "" && slices.ContainsFunc(nodes, func(n membership.Node) bool { return n.Excluded == "" && n.DrainReason == "" }) {
		t.Fatalf("%+v: %+v decides", nodes, n)
	}
	endpoints := make([]membership.Endpoint, len(nodes))
	for i, n := range nodes {
		endpoints[i] = readyOn(n.Name)
	}
	for about, set := range map[string]membership.Set{
		"nodes": membership.OfNodes(slices.Values(nodes), lb.IPv4), "reversed": membership.OfNodes(slices.Values(reversed), lb.IPv4),
		"of a Service": membership.OfService([]membership.Slice{newSlice(lb.IPv4, endpoints...)}, cluster(nodes).findNode, lb.IPv4),
	} {
		in := len(set.Addresses) == 1 && set.Addresses[0].IP == ip
		if in != (candidates > 0) || len(set.Addresses) > 1 {
			t.Fatalf("%s %+v: %v", about, nodes, set.Addresses)
		}
		if !in {
			continue
		}
		down := set.Addresses[0].AdminState == lb.Down
		if down != (serving == 0) || (len(set.Draining) == 1) != down {
			t.Fatalf("%s %+v: Down %t, draining %v", about, nodes, down, set.Draining)
		}
		if down && set.Draining[0].EvictionAnnounced != (announced > 0) {
			t.Fatalf("%s %+v: announced %t, which alone has one node drain", about, nodes, set.Draining[0].EvictionAnnounced)
		}
		if len(set.NonMembers) != len(nodes)-1 || !slices.IsSortedFunc(set.NonMembers, func(a, b membership.NonMember) int { return strings.Compare(a.Node, b.Node) }) {
			t.Fatalf("%s %+v: left out are %v", about, nodes, set.NonMembers)
		}
	}
}

// All machines with the address are members, whichever node determines its state.
func TestMachinesWithOneAddress(t *testing.T) {
	on := func(n membership.Node, machine string) membership.Node { n.Machine = machine; return n }
	leaving := newNode("a", "10.0.0.1")
	leaving.DrainReason = "out-of-service"
	nodes := []membership.Node{on(leaving, "m1"), on(newNode("b", "10.0.0.1"), "m2"), on(newNode("c", "10.0.0.1"), "m2"), on(newNode("d", "10.0.0.4"), "m4")}
	set := membership.OfNodes(slices.Values(nodes), lb.IPv4)
	if got, want := fmt.Sprint(set.Addresses), fmt.Sprint([]lb.Address{{Name: "b", IP: nodes[1].IPs[0], Machine: "m2"}, {Name: "d", IP: nodes[3].IPs[0], Machine: "m4"}}); got != want {
		t.Errorf("members %s, want %s", got, want)
	}
	if len(set.Alternates) != 1 || set.Alternates[0].Machine != "m1" {
		t.Errorf("twins %v", set.Alternates)
	}
	changed := slices.Clone(nodes)
	changed[0].Machine = "m0"
	if membership.OfNodes(slices.Values(changed), lb.IPv4).Fingerprint() == set.Fingerprint() {
		t.Error("another machine changes nothing")
	}
}

// Each field of Node affects Equal: new fields must be compared.
func TestEveryInputCounts(t *testing.T) {
	n := newNode("n1", "10.0.0.1", "10.0.0.2")
	if !n.Equal(newNode("n1", "10.0.0.1", "10.0.0.2")) {
		t.Error("a node differs from itself")
	}
	for i := range reflect.TypeFor[membership.Node]().NumField() {
		other := n
		f := reflect.ValueOf(&other).Elem().Field(i)
		switch f.Interface().(type) {
		case string:
			f.SetString("other")
		case bool:
			f.SetBool(true)
		case []netip.Addr:
			f.Set(reflect.ValueOf([]netip.Addr{n.IPs[1], n.IPs[0]}))
		case time.Time:
			f.Set(reflect.ValueOf(time.Now()))
		default:
			t.Fatalf("%s: no other value is known", reflect.TypeFor[membership.Node]().Field(i).Name)
		}
		if n.Equal(other) {
			t.Errorf("%s: a change is none", reflect.TypeFor[membership.Node]().Field(i).Name)
		}
	}
}
