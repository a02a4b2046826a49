// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// The nodes n1 and n2 are there, those of 10.0.0.3 and 10.0.0.4 are deleted.
func TestTheMemberOfADeletedNodeIsDownBeforeItLeaves(t *testing.T) {
	drains := newNode("n2", "10.0.0.2")
	drains.DrainReason = "out-of-service"
	of := func(nodes ...membership.Node) membership.Set {
		return membership.OfNodes(slices.Values(nodes), lb.IPv4)
	}
	both, single, draining, none := of(newNode("n1", "10.0.0.1"), newNode("n2", "10.0.0.2")), of(newNode("n1", "10.0.0.1")), of(drains), of()
	starts := single
	starts.Starting = starts.Addresses
	served := membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n3"))}, cluster{newNode("n1", "10.0.0.1")}.findNode, lb.IPv4)
	notServed := membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"))}, cluster{newNode("n1", "10.0.0.1")}.findNode, lb.IPv4)
	recreated := membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n3"))}, cluster{newNode("n1", "10.0.0.1"), newNode("n3")}.findNode, lb.IPv4)
	otherFamily := membership.OfService([]membership.Slice{newSlice(lb.IPv4, readyOn("n1"), readyOn("n3"))}, cluster{newNode("n1", "10.0.0.1"), newNode("n3", "fd00::3")}.findNode, lb.IPv4)
	seconds := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	type step struct {
		at      int
		set     membership.Set
		written string
		down    map[string]time.Time
		want    string
		second  int // -1: never
	}
	for name, steps := range map[string][]step{
		"others are up": {
			{0, both, "10.0.0.1 10.0.0.3 10.0.0.4", nil, "10.0.0.3(Down: deleted) 10.0.0.4(Down: deleted) n1 n2", 600},
			{4, both, "10.0.0.1 10.0.0.3 10.0.0.4", map[string]time.Time{"10.0.0.3": seconds(2)}, "10.0.0.3(Down: recorded) 10.0.0.4(Down: deleted) n1 n2", 12},
			{12, both, "10.0.0.1 10.0.0.3 10.0.0.4", map[string]time.Time{"10.0.0.3": seconds(2), "10.0.0.4": seconds(5)}, "10.0.0.4(Down: recorded) n1 n2", 15},
			{15, both, "10.0.0.1 10.0.0.4", map[string]time.Time{"10.0.0.4": seconds(5)}, "n1 n2", -1},
		},
		"it was Down before": {{100, both, "10.0.0.1 10.0.0.3", map[string]time.Time{"10.0.0.3": seconds(2)}, "n1 n2", -1}},
		"no other is up": {
			{0, none, "10.0.0.3", nil, "10.0.0.3", 600},
			{5, single, "10.0.0.3", nil, "10.0.0.3 n1", 600},          // is to join
			{8, starts, "10.0.0.1 10.0.0.3", nil, "10.0.0.3 n1", 600}, // has joined, and starts
			{20, single, "10.0.0.1 10.0.0.3", nil, "10.0.0.3 n1", 30}, // serves
			{29, single, "10.0.0.1 10.0.0.3", nil, "10.0.0.3 n1", 30},
			{30, single, "10.0.0.1 10.0.0.3", nil, "10.0.0.3(Down: deleted) n1", 600},
		},
		"the others go again": {
			{0, none, "10.0.0.3", nil, "10.0.0.3", 600},
			{1, single, "10.0.0.1 10.0.0.3", nil, "10.0.0.3 n1", 11},
			{2, draining, "10.0.0.2 10.0.0.3", nil, "10.0.0.3 n2(Down: out-of-service)", 600},
			{20, single, "10.0.0.1 10.0.0.3", map[string]time.Time{"10.0.0.1": seconds(2)}, "10.0.0.3 n1", 600}, // not restored yet
			{599, draining, "10.0.0.2 10.0.0.3", nil, "10.0.0.3 n2(Down: out-of-service)", 600},
			{600, draining, "10.0.0.2 10.0.0.3", nil, "n2(Down: out-of-service)", -1},
		},
		"an endpoint is there":                         {{0, served, "10.0.0.1 10.0.0.3", nil, "10.0.0.3(Down: deleted) n1 -n3", 600}},
		"its node is recreated and has no address yet": {{0, recreated, "10.0.0.1 10.0.0.3", nil, "10.0.0.3(Down: deleted) n1 -n3", 600}},
		"its node has another family":                  {{0, otherFamily, "10.0.0.1 10.0.0.3", nil, "n1 -n3", -1}},
		"none is there":                                {{0, notServed, "10.0.0.1 10.0.0.3", nil, "n1", -1}},
	} {
		var records map[netip.Addr]membership.WaitRecord
		for _, s := range steps {
			kept, next, recheckAt := s.set.RetainDeleted(records, onRecord(s.written, s.down), hasNode, seconds(s.at))
			records = next
			wantAgain := time.Time{}
			if s.second >= 0 {
				wantAgain = seconds(s.second)
			}
			if got := formatSet(kept); got != s.want || !recheckAt.Equal(wantAgain) {
				t.Errorf("%s: at %d: %s, again at %v; want %s and %v", name, s.at, got, recheckAt, s.want, wantAgain)
			}
		}
	}
}

func hasNode(ip netip.Addr) bool { return ip.As4()[3] <= 2 }

// No member of a deleted node becomes Down while no other recorded member is up, none joins, and each
// has left within LeavingTimeout and ProbeWait.
func TestLawOfDeletedNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records map[netip.Addr]membership.WaitRecord
		recorded, gone := onRecord("10.0.0.3 10.0.0.4", nil), map[netip.Addr]time.Time{}
		now, first := began, time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 5, 10, 60}).Draw(t, "seconds")) * time.Second)
			if first.IsZero() {
				first = now
			}
			var nodes []membership.Node
			up := false
			for _, n := range []int{1, 2} {
				node := newNode(fmt.Sprintf("n%d", n), fmt.Sprintf("10.0.0.%d", n))
				if !rapid.Bool().Draw(t, "is there") {
					continue
				}
				if rapid.Bool().Draw(t, "drains") {
					node.DrainReason = "out-of-service"
				}
				_, isDown := recorded.Down[node.IPs[0]]
				up = up || node.DrainReason == "" && !isDown && slices.Contains(recorded.Written, node.IPs[0])
				nodes = append(nodes, node)
			}
			kept, next, recheckAt := membership.OfNodes(slices.Values(nodes), lb.IPv4).RetainDeleted(records, recorded, hasNode, now)
			records = next
			if !recheckAt.IsZero() && !recheckAt.After(now) {
				t.Fatalf("again at %v, now is %v", recheckAt, now)
			}
			written := membership.MemberRecord{Down: map[netip.Addr]membership.DownRecord{}}
			for _, a := range kept.Addresses {
				_, wasDown := recorded.Down[a.IP]
				since, ok := gone[a.IP]
				switch isDown := a.AdminState == lb.Down; {
				case hasNode(a.IP):
				case ok:
					t.Fatalf("%s left at %v and is back", a.IP, since)
				case isDown && !wasDown && !up:
					t.Fatalf("%s goes Down, and no other member is up", a.IP)
				case now.Sub(first) >= membership.LeavingTimeout+membership.ProbeWait:
					t.Fatalf("%s is there after %s", a.IP, now.Sub(first))
				}
			}
			if !rapid.Bool().Draw(t, "written") {
				continue
			}
			for _, a := range kept.Addresses {
				if written.Written = append(written.Written, a.IP); a.AdminState == lb.Down {
					record, wasDown := recorded.Down[a.IP]
					if !wasDown {
						record.Since = now
					}
					written.Down[a.IP] = record
				}
			}
			for _, ip := range recorded.Written {
				if !slices.Contains(written.Written, ip) && !hasNode(ip) {
					gone[ip] = now
				}
			}
			recorded = written
		}
	})
}

// Without admin states nothing is retained, and the given records are not modified.
func TestRecordsOfDeletedNodesAreNotModified(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.3")
	records := map[netip.Addr]membership.WaitRecord{ip: {Since: began}}
	before := maps.Clone(records)
	set := membership.OfNodes(slices.Values([]membership.Node{newNode("n1", "10.0.0.1")}), lb.IPv4)
	set.RetainDeleted(records, onRecord("10.0.0.1 10.0.0.3", nil), hasNode, began.Add(time.Second))
	if !maps.Equal(records, before) {
		t.Errorf("changed: %v", records)
	}
	set.DeletedMayServe = false
	if kept, next, recheckAt := set.RetainDeleted(records, onRecord("10.0.0.3", nil), hasNode, began); formatSet(kept) != "n1" || next != nil || !recheckAt.IsZero() {
		t.Errorf("off: %s, %v, %v", formatSet(kept), next, recheckAt)
	}
}
