// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// startingSet is the set of a Service with these endpoints on nodes n1 (10.0.0.1), n2 and so on.
func startingSet(mode membership.EarlyJoin, endpoints ...membership.Endpoint) membership.Set {
	find := func(name string) (membership.Node, bool) {
		var number int
		_, err := fmt.Sscanf(name, "n%d", &number)
		return newNode(name, fmt.Sprintf("10.0.0.%d", number)), err == nil
	}
	set := membership.OfService([]membership.Slice{newSlice(lb.IPv4, endpoints...)}, find, lb.IPv4)
	set.EarlyJoin = mode
	return set
}

func TestNodesThatStart(t *testing.T) {
	leaving, excluded := newNode("n4", "10.0.0.4"), newNode("n5", "10.0.0.5")
	leaving.DrainReason, excluded.Excluded = "out-of-service", "it is labelled so"
	nodes := cluster{newNode("n1", "10.0.0.1"), newNode("n2", "10.0.0.2"), newNode("n3", "10.0.0.1"), leaving, excluded}
	for _, tt := range []struct {
		name      string
		endpoints []membership.Endpoint
		want      string
	}{
		{"one that is not ready", []membership.Endpoint{notReady("n2")}, "n2"},
		{"one that is ready is a member", []membership.Endpoint{notReady("n2"), readyOn("n2")}, ""},
		{"one that drains is a member", []membership.Endpoint{notReady("n2"), servingTerminating("n2")}, ""},
		{"one that ends never serves", []membership.Endpoint{terminatingOn("n2")}, ""},
		{"its address is that of a member", []membership.Endpoint{notReady("n3"), readyOn("n1")}, ""},
		{"its node drains", []membership.Endpoint{notReady("n4")}, ""},
		{"its node is excluded", []membership.Endpoint{notReady("n5")}, ""},
		{"its node is unknown", []membership.Endpoint{notReady("n9"), notReady("")}, ""},
	} {
		set := membership.OfService([]membership.Slice{newSlice(lb.IPv4, tt.endpoints...)}, nodes.findNode, lb.IPv4)
		got := ""
		for _, a := range set.Starting {
			got += a.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q start, want %q", tt.name, got, tt.want)
		}
	}
}

// A node joins before its endpoint is ready, leaves after StartTimeout, and joins again only once one was ready, or there
// was none for as long.
func TestJoinEarly(t *testing.T) {
	var starts map[netip.Addr]membership.StartRecord
	at := func(after time.Duration, mode membership.EarlyJoin, written string, endpoints ...membership.Endpoint) (string, time.Duration) {
		var record membership.MemberRecord
		if written != "" {
			record.Written = []netip.Addr{netip.MustParseAddr(written)}
		}
		set, next, recheckAt := startingSet(mode, endpoints...).JoinEarly(starts, record, noon.Add(after))
		if starts = next; recheckAt.IsZero() {
			return formatMembers(set), 0
		}
		return formatMembers(set), recheckAt.Sub(noon)
	}
	const late = "n1=10.0.0.1"
	for _, tt := range []struct {
		name      string
		after     time.Duration
		mode      membership.EarlyJoin
		endpoints []membership.Endpoint
		want      string
		retry     time.Duration
	}{
		{"no probe tells", 0, membership.JoinWhenReady, []membership.Endpoint{readyOn("n1"), notReady("n2")}, "n1=10.0.0.1", 0},
		{"it starts", time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, "n1=10.0.0.1 n2=10.0.0.2", 10 * time.Minute},
		{"its pod is deleted", 2 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1")}, "n1=10.0.0.1", 0},
		{"and created again", 3 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, "n1=10.0.0.1 n2=10.0.0.2", 10 * time.Minute},
		{"it starts too long", 10 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, late, 0},
		{"much too long", 30 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, late, 0},
		{"its pod is gone again", 31 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1")}, "n1=10.0.0.1", 0},
		{"the next one starts", 40 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, late, 0},
		{"it is ready", 41 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), readyOn("n2")}, "n1=10.0.0.1 n2=10.0.0.2", 0},
		{"it fails again", 42 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, "n1=10.0.0.1 n2=10.0.0.2", 52 * time.Minute},
		{"its pod is gone", 43 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1")}, "n1=10.0.0.1", 0},
		{"the next one starts ten minutes later", 53 * time.Minute, membership.JoinWhileStarting, []membership.Endpoint{readyOn("n1"), notReady("n2")}, "n1=10.0.0.1 n2=10.0.0.2", 63 * time.Minute},
	} {
		if got, recheckAfter := at(tt.after, tt.mode, "", tt.endpoints...); got != tt.want || recheckAfter != tt.retry {
			t.Fatalf("%s: %s, again %s\nwant %s, %s", tt.name, got, recheckAfter, tt.want, tt.retry)
		}
	}
	starts = nil
	if got, _ := at(0, membership.JoinUnknown, "10.0.0.2", notReady("n2"), notReady("n3")); got != "n2=10.0.0.2" {
		t.Errorf("before the rules are read: %s", got)
	}
	if at(11*time.Minute, membership.JoinUnknown, ""); len(starts) != 2 {
		t.Errorf("%d records after the endpoints are gone", len(starts))
	}
	if at(22*time.Minute, membership.JoinUnknown, ""); len(starts) != 0 {
		t.Errorf("%d records long after the endpoints are gone", len(starts))
	}
}

// Property: whatever the pods of a node do, it is no member for longer than StartTimeout after an endpoint there
// last took traffic, unless none was there for as long, and a member that takes traffic is in every set.
func TestLawOfEarlyMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var starts map[netip.Addr]membership.StartRecord
		now, since, gone := noon, map[string]time.Time{}, map[string]time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "seconds")) * time.Second)
			var endpoints []membership.Endpoint
			takes, waits := map[string]bool{}, map[string]bool{}
			for _, node := range []string{"n1", "n2"} {
				for range rapid.IntRange(0, 2).Draw(t, "endpoints") {
					e := rapid.SampledFrom([]membership.Endpoint{readyOn(node), notReady(node), notReady(node), servingTerminating(node), terminatingOn(node)}).Draw(t, "endpoint")
					endpoints, takes[node] = append(endpoints, e), takes[node] || e.TakesTraffic()
					waits[node] = waits[node] || e == notReady(node)
				}
			}
			set := startingSet(membership.JoinWhileStarting, endpoints...)
			joined, next, recheckAt := set.JoinEarly(starts, membership.MemberRecord{}, now)
			starts = next
			names := map[string]bool{}
			for _, a := range joined.Addresses {
				names[a.Name] = true
			}
			for _, node := range []string{"n1", "n2"} {
				if absent, ok := gone[node]; ok && !now.Before(absent.Add(membership.StartTimeout)) {
					delete(since, node)
				}
				if _, ok := gone[node]; takes[node] || waits[node] {
					delete(gone, node)
				} else if !ok {
					gone[node] = now
				}
				first, known := since[node]
				switch {
				case takes[node]:
					delete(since, node)
					if !names[node] {
						t.Fatalf("%s takes traffic and is no member: %v", node, joined.Addresses)
					}
				case names[node] && known && !now.Before(first.Add(membership.StartTimeout)):
					t.Fatalf("%s has been a member for %s", node, now.Sub(first))
				case names[node] && (recheckAt.IsZero() || !recheckAt.After(now)):
					t.Fatalf("%s is a member, and is rechecked at %s, now %s", node, recheckAt, now)
				case names[node] && !known:
					since[node] = now
				}
			}
			if !slices.IsSortedFunc(joined.Addresses, func(a, b lb.Address) int { return a.IP.Compare(b.IP) }) {
				t.Fatalf("not in order: %v", joined.Addresses)
			}
		}
	})
}
