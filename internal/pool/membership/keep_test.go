// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

var began = time.Unix(1000, 0)

// onRecord parses "10.0.0.1 10.0.0.2" as written, with the given Down times.
func onRecord(written string, down map[string]time.Time) membership.MemberRecord {
	record := membership.MemberRecord{Down: map[netip.Addr]membership.DownRecord{}}
	for _, ip := range strings.Fields(written) {
		record.Written = append(record.Written, netip.MustParseAddr(ip))
	}
	for ip, since := range down {
		record.Down[netip.MustParseAddr(ip)] = membership.DownRecord{Since: since, Reason: "recorded"}
	}
	return record
}

// formatSet formats a set as "n1 n2(Down: why)" and its absent nodes.
func formatSet(s membership.Set) string {
	var parts []string
	for _, a := range s.Addresses {
		text := a.Name
		if a.AdminState == lb.Down {
			i := slices.IndexFunc(s.Draining, func(d membership.Drain) bool { return d.IP == a.IP })
			text += "(Down: " + s.Draining[i].Reason + ")"
		}
		parts = append(parts, text)
	}
	for _, a := range s.NonMembers {
		parts = append(parts, "-"+a.Node)
	}
	return strings.Join(parts, " ")
}

// n1 serves without a label; n2 to n4 serve and get an exclusion label.
func TestALabelledNodeThatServesIsDownBeforeItLeaves(t *testing.T) {
	labelled := func(name, ip string) membership.Node {
		n := newNode(name, ip)
		n.Excluded, n.StaysWhileServing, n.DrainReason = "it is labelled", true, membership.ReasonExcluded
		return n
	}
	other := newNode("n5", "10.0.0.5")
	other.Excluded = "it is a control-plane node"
	nodes := cluster{newNode("n1", "10.0.0.1"), labelled("n2", "10.0.0.2"), labelled("n3", "10.0.0.3"), labelled("n4", "10.0.0.4"), other}
	for name, set := range map[string]membership.Set{
		"of nodes":     membership.OfNodes(slices.Values(nodes), lb.IPv4),
		"of a Service": membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n2"), servingTerminating("n3"), readyOn("n4"), readyOn("n5"))}, nodes.findNode, lb.IPv4),
	} {
		for _, tt := range []struct {
			about   string
			has     membership.MemberRecord
			now     time.Time
			want    string
			againAt time.Time
		}{
			{"no member joins", onRecord("10.0.0.1", nil), began, "n1 -n2 -n3 -n4 -n5", time.Time{}},
			{"a member becomes Down, whatever is on record of others", onRecord("10.0.0.1 10.0.0.3 10.0.0.5", nil), began, "n1 n3(Down: excluded) -n2 -n4 -n5", time.Time{}},
			{"it stays so", onRecord("10.0.0.3 10.0.0.4", map[string]time.Time{"10.0.0.3": began, "10.0.0.4": began.Add(time.Minute)}), began.Add(2 * time.Minute), "n1 n3(Down: excluded) n4(Down: excluded) -n2 -n5", began.Add(membership.LeavingTimeout)},
			{"it leaves after a while", onRecord("10.0.0.3 10.0.0.4", map[string]time.Time{"10.0.0.3": began, "10.0.0.4": began.Add(time.Minute)}), began.Add(membership.LeavingTimeout), "n1 n4(Down: excluded) -n2 -n3 -n5", began.Add(membership.LeavingTimeout + time.Minute)},
		} {
			kept, recheckAt := set.RetainLeaving(tt.has, tt.now)
			if got := formatSet(kept); got != tt.want || !recheckAt.Equal(tt.againAt) {
				t.Errorf("%s: %s: %s, again at %v; want %s and %v", name, tt.about, got, recheckAt, tt.want, tt.againAt)
			}
			if len(kept.Retained) != len(kept.Draining) || kept.RetainedStale != 0 {
				t.Errorf("%s: %s: kept %v", name, tt.about, kept.Retained)
			}
		}
	}
}

// With a stale cache no recorded member is missing; joins and admin states follow the cache.
func TestNoMemberLeavesWhileTheClusterMayBeOld(t *testing.T) {
	drains := newNode("n3", "10.0.0.3")
	drains.DrainReason = "out-of-service"
	nodes := cluster{newNode("n1", "10.0.0.1"), newNode("n2", "10.0.0.2"), drains, newNode("n5", "10.0.0.5")}
	at := func(ip netip.Addr) (membership.Node, bool) {
		i := slices.IndexFunc(nodes, func(n membership.Node) bool { return n.IPs[0] == ip })
		if i < 0 {
			return membership.Node{}, false
		}
		return nodes[i], true
	}
	set := membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n5"))}, nodes.findNode, lb.IPv4)
	record := onRecord("10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6", map[string]time.Time{"10.0.0.2": began, "10.0.0.6": began})
	kept := set.RetainRemoved(record, at)
	// n2 no longer drains, and the nodes of the last two are unknown.
	if got, want := formatSet(kept), "10.0.0.4 10.0.0.6(Down: recorded) n1 n2 n3(Down: out-of-service) n5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(kept.Retained, kept.RetainedStale); got != "[10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.6] 4" {
		t.Errorf("kept %s", got)
	}
	if got := formatSet(set); got != "n1 n5" {
		t.Errorf("the set itself became %s", got)
	}
	if got := formatSet(membership.Set{}.RetainRemoved(onRecord("10.0.0.1", nil), at)); got != "n1" {
		t.Errorf("of nobody: %s", got)
	}
}

// Labeled nodes with the same address: the address remains once.
func TestALabelledAddressOfTwoNodesIsThereOnce(t *testing.T) {
	var nodes cluster
	for _, name := range []string{"a", "b"} {
		n := newNode(name, "10.0.0.1")
		n.Excluded, n.StaysWhileServing, n.DrainReason = "it is labelled", true, membership.ReasonExcluded
		nodes = append(nodes, n)
	}
	kept, _ := membership.OfNodes(slices.Values(nodes), lb.IPv4).RetainLeaving(onRecord("10.0.0.1", nil), began)
	if got, want := formatSet(kept), "a(Down: excluded) -b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLawOfRetainedMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ip := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
		var nodes cluster
		record := membership.MemberRecord{Down: map[netip.Addr]membership.DownRecord{}}
		for i := range 8 {
			n := membership.Node{Name: fmt.Sprint("n", i), IPs: []netip.Addr{ip(rapid.IntRange(max(i-1, 0), i).Draw(t, "address"))}}
			if rapid.Bool().Draw(t, "labelled") {
				n.Excluded, n.StaysWhileServing, n.DrainReason = "it is labelled", true, membership.ReasonExcluded
			}
			if rapid.Bool().Draw(t, "there") {
				nodes = append(nodes, n)
			}
			if rapid.Bool().Draw(t, "written") {
				record.Written = append(record.Written, ip(i))
				if rapid.Bool().Draw(t, "down") {
					record.Down[ip(i)] = membership.DownRecord{Since: began.Add(time.Duration(rapid.IntRange(-15, 0).Draw(t, "minutes")) * time.Minute)}
				}
			}
		}
		set := membership.OfNodes(slices.Values(nodes), lb.IPv4)
		kept, _ := set.RetainLeaving(record, began)
		all := kept.RetainRemoved(record, func(ip netip.Addr) (membership.Node, bool) { return membership.Node{}, false })
		for _, s := range []membership.Set{kept, all} {
			at := map[netip.Addr]bool{}
			for i, a := range s.Addresses {
				if at[a.IP] {
					t.Fatalf("%s is there twice: %s", a.IP, formatSet(s))
				}
				at[a.IP] = true
				isNew := !slices.Contains(record.Written, a.IP)
				if isNew && (a.AdminState == lb.Down || slices.Contains(s.Retained, a.IP)) || i > 0 && s.Addresses[i-1].Name >= a.Name {
					t.Fatalf("%s", formatSet(s))
				}
			}
		}
		for _, written := range record.Written {
			if !slices.ContainsFunc(all.Addresses, func(a lb.Address) bool { return a.IP == written }) {
				t.Fatalf("%s left: %s", written, formatSet(all))
			}
		}
	})
}
