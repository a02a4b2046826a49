// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

func setsByLoadBalancer(nodes []membership.Node, places ...string) map[string]membership.Set {
	sets := map[string]membership.Set{}
	for _, place := range places {
		var local []membership.Node
		for _, n := range nodes {
			if n.Place != place {
				continue
			}
			ip, _ := n.Address(lb.IPv4)
			duplicates := slices.DeleteFunc(slices.Clone(nodes), func(o membership.Node) bool { at, ok := o.Address(lb.IPv4); return !ok || at != ip })
			local = append(local, membership.ResolveDuplicate(n, duplicates, "its address "+ip.String()))
		}
		sets[place] = membership.OfNodes(slices.Values(local), lb.IPv4)
	}
	return sets
}

func placedNode(name, place string, states ...func(*membership.Node)) membership.Node {
	n := newNode(name, "10.0.0.1")
	n.Place = place
	for _, set := range states {
		set(&n)
	}
	return n
}

// Nodes on two load balancers share an address.
func TestNodesWithOneAddressOnTwoLoadBalancers(t *testing.T) {
	serves := func(n *membership.Node) { n.StaysWhileServing, n.DrainReason = true, membership.ReasonExcluded }
	on := func(address string) func(*membership.Node) {
		return func(n *membership.Node) { n.IPs = []netip.Addr{netip.MustParseAddr(address)} }
	}
	for _, tt := range []struct {
		about       string
		nodes       []membership.Node
		single, two string // members
		left        string // excluded from the first load balancer
	}{
		{"the first by name", []membership.Node{placedNode("b", "one"), placedNode("a", "two")}, "", "a", "node b: its address 10.0.0.1 is also that of node a, which is on load balancer two and counts: it is the first by name"},
		{"the other order", []membership.Node{placedNode("a", "one"), placedNode("b", "two")}, "a", "", ""},
		{"one alone", []membership.Node{placedNode("a", "one")}, "a", "", ""},
		{"other addresses", []membership.Node{placedNode("b", "one", on("10.0.0.9")), placedNode("a", "two")}, "b", "a", ""},
		{"one is excluded", []membership.Node{placedNode("b", "one"), placedNode("a", "two", states["excluded"])}, "b", "", ""},
		{"one has no machine", []membership.Node{placedNode("b", "one"), placedNode("a", "two", states["no machine"])}, "b", "", ""},
		{"one is on no load balancer", []membership.Node{placedNode("b", "one"), placedNode("a", "")}, "b", "", ""},
		{"one leaves", []membership.Node{placedNode("b", "one"), placedNode("a", "two", states["leaving"])}, "", "a", "node b: its address"},
		{"both leave", []membership.Node{placedNode("b", "one", states["leaving"]), placedNode("a", "two", states["leaving"])}, "", "a(Down)", "node b: its address"},
		{"three", []membership.Node{placedNode("a", "one", states["leaving"]), placedNode("c", "one", states["leaving"]), placedNode("b", "two")}, "a", "", "node c: its address 10.0.0.1 is also that of node a"},
		{"one is excluded and serves", []membership.Node{placedNode("a", "one", states["excluded"], serves), placedNode("b", "two")}, "", "b", "node a: it is labeled so"},
	} {
		sets := setsByLoadBalancer(tt.nodes, "one", "two")
		spell := func(set membership.Set) string {
			var nodes []string
			for _, a := range set.Addresses {
				name := a.Name
				if a.AdminState == lb.Down {
					name += "(Down)"
				}
				nodes = append(nodes, name)
			}
			return strings.Join(nodes, " ")
		}
		if item, two := spell(sets["one"]), spell(sets["two"]); item != tt.single || two != tt.two {
			t.Errorf("%s: on one %q, on two %q; want %q and %q", tt.about, item, two, tt.single, tt.two)
		}
		if nonMembers := sets["one"].NonMembers; tt.left != "" && (len(nonMembers) != 1 || !strings.HasPrefix(nonMembers[0].String(), tt.left)) {
			t.Errorf("%s: left out of one are %v", tt.about, nonMembers)
		}
		if len(sets["one"].ServingExcluded) > 0 && tt.two != "" {
			t.Errorf("%s: it stays on one as well: %v", tt.about, sets["one"].ServingExcluded)
		}
	}
}

// Property: an address is in the pools of at most one load balancer; if an eligible node has it, it is in
// exactly one, and Down while all these nodes drain. The order of nodes does not matter, and draining moves
// no address.
func TestLawNodesWithOneAddressAcrossLoadBalancers(t *testing.T) {
	places := []string{"one", "two", "three"}
	rapid.Check(t, func(t *rapid.T) {
		var nodes []membership.Node
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			n := newNode(fmt.Sprint("n", i), fmt.Sprint("10.0.0.", rapid.IntRange(1, 2).Draw(t, "address")))
			n.Place = rapid.SampledFrom(append(places, "")).Draw(t, "place")
			states[rapid.SampledFrom(slices.Sorted(maps.Keys(states))).Draw(t, "state")](&n)
			n.EvictionAnnouncedAt = time.Unix(rapid.Int64Range(0, 3).Draw(t, "announced"), 0)
			nodes = append(nodes, n)
		}
		sets := setsByLoadBalancer(nodes, places...)
		if got := fmt.Sprint(setsByLoadBalancer(rapid.Permutation(nodes).Draw(t, "order"), places...)); got != fmt.Sprint(sets) {
			t.Fatalf("in another order: %s\nwas %v", got, sets)
		}
		for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
			var on []string
			down, may, serves := false, 0, 0
			for place, set := range sets {
				for _, a := range set.Addresses {
					if a.IP.String() == ip {
						on, down = append(on, place), a.AdminState == lb.Down
					}
				}
			}
			for _, n := range nodes {
				if n.IPs[0].String() == ip && n.Place != "" && n.Excluded == "" && n.NoMachine == "" {
					if may++; n.DrainReason == "" {
						serves++
					}
				}
			}
			if len(on) != min(may, 1) || may > 0 && down != (serves == 0) {
				t.Fatalf("%s is on %v, Down %t; %d nodes may give it, %d serve", ip, on, down, may, serves)
			}
		}
		i := rapid.IntRange(0, len(nodes)-1).Draw(t, "leaves")
		after := slices.Clone(nodes)
		after[i].DrainReason = "out-of-service"
		for place, set := range setsByLoadBalancer(after, places...) {
			if got, want := addressesIn(set), addressesIn(sets[place]); got != want {
				t.Fatalf("%s leaves, and %s has %s, had %s", after[i].Name, place, got, want)
			}
		}
	})
}

func addressesIn(set membership.Set) string {
	var addresses []string
	for _, a := range set.Addresses {
		addresses = append(addresses, a.IP.String())
	}
	slices.Sort(addresses)
	return strings.Join(addresses, " ")
}
