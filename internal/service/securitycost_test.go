// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
)

func numberedAddress(first byte, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{first, byte(i >> 16), byte(i >> 8), byte(i)})
}

// restrictedInput returns Services with one address each and a number of service tags.
func restrictedInput(services, tags int) SecurityInput {
	in := SecurityInput{Managed: map[netip.Addr]bool{}}
	for i := range services {
		at := []netip.Addr{numberedAddress(20, i)}
		in.Managed[at[0]] = true
		s := SecurityShare{Service: fmt.Sprint("s", i), Places: []SecurityPlace{{Addresses: at}}}
		for n := range tags {
			s.AccessRules = append(s.AccessRules, AccessRule{
				Access: lb.Allow, Family: lb.IPv4, Protocol: "Tcp", Sources: []string{fmt.Sprintf("T%d-%d", i, n)},
				Destinations: at, Ports: []string{"80"},
			})
		}
		in.Shares = append(in.Shares, s)
	}
	return in
}

// behindNodes returns unknown Services without floating IP at node ports, and a group that admits their
// flows.
func behindNodes(services, nodes int) SecurityInput {
	in := SecurityInput{Managed: map[netip.Addr]bool{}}
	var at []netip.Addr
	var texts []string
	for i := range nodes {
		at = append(at, numberedAddress(10, i))
		texts = append(texts, at[i].String())
		in.Managed[at[i]] = true
	}
	var ports []int32
	for i := range services {
		ports = append(ports, int32(30000+i%2768)) //nolint:gosec // small
		in.Shares = append(in.Shares, SecurityShare{Service: fmt.Sprint("s", i), Fixed: true, Places: []SecurityPlace{{Addresses: []netip.Addr{numberedAddress(20, i)}}}})
	}
	in.Shares = append(in.Shares, SecurityShare{Fixed: true, Places: []SecurityPlace{{Addresses: at, Ports: ports}}})
	for i := range 4000 / nodes {
		r := newManagedRule(fmt.Sprint("allow_IPv4_", i), int32(500+i), texts...) //nolint:gosec // small
		r.Sources, r.DestinationPorts = []string{fmt.Sprint("T", i)}, []string{fmt.Sprint(32768 + i)}
		in.Observed = append(in.Observed, r)
	}
	return in
}

func fullInput(in SecurityInput) SecurityInput { in.Observed = BuildSecurityPlan(in).Next; return in }

var costs = []struct {
	about string
	of    func(n int) SecurityInput // 1000 is the largest input
}{
	{"tags of one Service", func(n int) SecurityInput { return restrictedInput(1, n) }},
	{"tags of one Service that are there", func(n int) SecurityInput { return fullInput(restrictedInput(1, n)) }},
	{"Services that have no room", func(n int) SecurityInput { return restrictedInput(5*n, 1) }},
	{"Services in a full group", func(n int) SecurityInput {
		in := restrictedInput(5*n, 1)
		in.Observed = BuildSecurityPlan(restrictedInput(1000, 1)).Next
		return in
	}},
	{"Services that go", func(n int) SecurityInput {
		in := fullInput(restrictedInput(n, 1))
		in.Shares = nil
		return in
	}},
	{"a hundred Services that want more than the bound of their namespace", func(n int) SecurityInput {
		in := fullInput(restrictedInput(n, 1))
		in.Limits = func(string) NamespaceSettings {
			return ParseNamespaceSettings("team", map[string]string{MaxSecurityRules: "1"})
		}
		more := restrictedInput(n, 2)
		for i := range in.Shares {
			if i < n/10 {
				in.Shares[i] = more.Shares[i]
			}
			in.Shares[i].Namespace = "team"
		}
		return in
	}},
	{"Services behind nodes", func(n int) SecurityInput { return behindNodes(5*n, n) }},
}

func BenchmarkMerge(b *testing.B) {
	for _, c := range costs {
		b.Run(c.about, func(b *testing.B) {
			in := c.of(1000)
			for b.Loop() {
				BuildSecurityPlan(in)
			}
		})
	}
}

// The largest group is planned quickly.
func TestTheLargestGroupIsPlanned(t *testing.T) {
	for _, c := range costs {
		in := c.of(1000)
		requireFinished(c.about, func() { BuildSecurityPlan(in) })
	}
}

// Twice the input needs about twice the allocations.
func TestAPlanGrowsWithItsInput(t *testing.T) {
	for _, c := range costs {
		cost := func(n int) float64 {
			in := c.of(n)
			return testing.AllocsPerRun(1, func() { BuildSecurityPlan(in) })
		}
		if once, twice := cost(250), cost(500); twice > 2.5*once {
			t.Errorf("%s: once %.0f allocations, for twice as much %.0f", c.about, once, twice)
		}
	}
}
