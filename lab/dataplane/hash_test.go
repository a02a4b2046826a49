// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"testing"

	"weir.dev/weir/lab/armemu"
)

func ruleOf(distribution string, members ...string) *armemu.ForwardingRule {
	r := &armemu.ForwardingRule{LoadBalance: distribution}
	for _, m := range members {
		r.Members = append(r.Members, armemu.ForwardingMember{Name: m, IP: nodeIP(m)})
	}
	return r
}

func choose(t *testing.T, r *armemu.ForwardingRule, from string, protocol Protocol, to netip.AddrPort) string {
	t.Helper()
	m, ok := chooseMember(r, flow{protocol, netip.MustParseAddrPort(from), to}, nil)
	if !ok {
		t.Fatal("no member")
	}
	return m.Name
}

// Flows are spread evenly, each always to the same member, and a member that leaves moves only its own.
func TestTheHashOfAFlow(t *testing.T) {
	all, fewer := ruleOf("Default", "n1", "n2", "n3"), ruleOf("Default", "n3", "n1")
	const flows = 3000
	count := map[string]int{}
	for port := range flows {
		from := fmt.Sprintf("10.1.1.1:%d", 20000+port)
		to := choose(t, all, from, TCP, front)
		count[to]++
		if second := choose(t, all, from, TCP, front); second != to {
			t.Fatalf("%s went to %s, then to %s", from, to, second)
		}
		if after := choose(t, fewer, from, TCP, front); to != "n2" && after != to {
			t.Fatalf("n2 left: %s moved from %s to %s", from, to, after)
		}
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		if count[n] < flows/3*8/10 || count[n] > flows/3*12/10 {
			t.Errorf("%s gets %d of %d", n, count[n], flows)
		}
	}
}

// Each part of the five-tuple counts according to the rule's distribution.
func TestLoadDistributions(t *testing.T) {
	for distribution, want := range map[string][3]bool{ // another source port, protocol, source address
		"Default": {true, true, true}, "SourceIP": {false, false, true}, "SourceIPProtocol": {false, true, true},
	} {
		r := ruleOf(distribution, "n1", "n2", "n3")
		var got [3]bool
		first := choose(t, r, "10.1.1.1:1000", TCP, front)
		for i := range 50 {
			got[0] = got[0] || choose(t, r, fmt.Sprintf("10.1.1.1:%d", 2000+i), TCP, front) != first
			from := fmt.Sprintf("10.1.2.%d:1000", i)
			got[1] = got[1] || choose(t, r, from, UDP, front) != choose(t, r, from, TCP, front)
			got[2] = got[2] || choose(t, r, from, TCP, front) != first
		}
		if got != want {
			t.Errorf("%s: other members by source port, protocol, source address: %v, want %v", distribution, got, want)
		}
	}
}
