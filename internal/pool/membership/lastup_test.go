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

// lastUpSet parses "n1 n2! n3!!" : n2 drains, and n3 drains at once.
func lastUpSet(text string) membership.Set {
	var nodes []membership.Node
	for _, word := range strings.Fields(text) {
		n := newNode(strings.TrimRight(word, "!"), "10.0.0."+strings.Trim(word, "n!"))
		if strings.HasSuffix(word, "!") {
			n.DrainReason, n.DrainsAtOnce = "leaves", strings.HasSuffix(word, "!!")
		}
		nodes = append(nodes, n)
	}
	return membership.OfNodes(slices.Values(nodes), lb.IPv4)
}

func TestKeepLastUp(t *testing.T) {
	seconds := func(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }
	type step struct {
		at           int
		nodes        string
		written      string
		down         string
		starting     string
		want, lastUp string
		second       int // -1: never
	}
	for name, steps := range map[string][]step{
		"another is up": {
			{0, "n1 n2!", "n1 n2", "", "", "n1 n2(Down: leaves)", "", -1},
		},
		"none is up, and then one joins": {
			{0, "n2!", "n2", "", "", "n2", "n2", 600},
			{5, "n1 n2!", "n2", "", "", "n1 n2", "n2", 600},      // is to join
			{8, "n1 n2!", "n1 n2", "", "n1", "n1 n2", "n2", 600}, // has joined, and starts
			{20, "n1 n2!", "n1 n2", "", "", "n1 n2", "n2", 30},   // serves
			{29, "n1 n2!", "n1 n2", "", "", "n1 n2", "n2", 30},
			{30, "n1 n2!", "n1 n2", "", "", "n1 n2(Down: leaves)", "", -1},
		},
		"none is up for long": {
			{0, "n2!", "n2", "", "", "n2", "n2", 600},
			{599, "n2!", "n2", "", "", "n2", "n2", 600},
			{600, "n2!", "n2", "", "", "n2(Down: leaves)", "", -1},
			{601, "n2!", "n2", "n2", "", "n2(Down: leaves)", "", -1},
		},
		"all drain one after the other": {
			{0, "n1! n2", "n1 n2", "", "", "n1(Down: leaves) n2", "", -1},
			{9, "n1! n2!", "n1 n2", "n1", "", "n1(Down: leaves) n2", "n2", 609},
		},
		"all drain together":             {{0, "n1! n2!", "n1 n2", "", "", "n1 n2", "n1 n2", 600}},
		"the other one is not yet back":  {{0, "n1 n2!", "n1 n2", "n1", "", "n1 n2", "n2", 600}},
		"at once":                        {{0, "n1! n2!!", "n1 n2", "", "", "n1 n2(Down: leaves)", "n1", 600}},
		"it has not been a member":       {{0, "n2!", "", "", "", "n2(Down: leaves)", "", -1}},
		"it was Down before":             {{0, "n2!", "n2", "n2", "", "n2(Down: leaves)", "", -1}},
		"it stops draining, and resumes": {{0, "n2!", "n2", "", "", "n2", "n2", 600}, {9, "n2", "n2", "", "", "n2", "", -1}, {400, "n2!", "n2", "", "", "n2", "n2", 1000}},
	} {
		var records map[netip.Addr]membership.WaitRecord
		address := strings.NewReplacer("n", "10.0.0.")
		for _, s := range steps {
			down := map[string]time.Time{}
			for _, n := range strings.Fields(s.down) {
				down[address.Replace(n)] = began
			}
			set := lastUpSet(s.nodes)
			set.Starting = slices.DeleteFunc(slices.Clone(set.Addresses), func(a lb.Address) bool { return !strings.Contains(s.starting, a.Name) })
			kept, next, recheckAt := set.KeepLastUp(records, onRecord(address.Replace(s.written), down), seconds(s.at))
			records = next
			wantAgain := time.Time{}
			if s.second >= 0 {
				wantAgain = seconds(s.second)
			}
			if got := formatSet(kept); got != s.want || drainNames(kept.LastUp) != s.lastUp || !recheckAt.Equal(wantAgain) {
				t.Errorf("%s: at %d: %s, last up %q, again at %v; want %s, %q and %v", name, s.at, got, drainNames(kept.LastUp), recheckAt, s.want, s.lastUp, wantAgain)
			}
		}
	}
}

// Nodes begin and cease to drain and to exist. No recorded member becomes Down while no other is up, unless it drains at
// once or has drained for LeavingTimeout, and each that has drained for that long is Down.
func TestLawOfTheLastUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records map[netip.Addr]membership.WaitRecord
		record, since, now := onRecord("", nil), map[netip.Addr]time.Time{}, began
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 5, 10, 60, 600}).Draw(t, "seconds")) * time.Second)
			var words []string
			for n := range 4 {
				if state := rapid.SampledFrom([]string{"", "", "!", "!!", "-"}).Draw(t, "state"); state != "-" {
					words = append(words, fmt.Sprint("n", n, state))
				}
			}
			set := lastUpSet(strings.Join(words, " "))
			kept, next, recheckAt := set.KeepLastUp(records, record, now)
			if records = next; !recheckAt.IsZero() && !recheckAt.After(now) {
				t.Fatalf("again at %v, now is %v", recheckAt, now)
			}
			if len(kept.Addresses) != len(set.Addresses) || len(kept.Draining)+len(kept.LastUp) != len(set.Draining) {
				t.Fatalf("%s became %s", formatSet(set), formatSet(kept))
			}
			up, drains := 0, map[netip.Addr]time.Time{}
			for _, a := range set.Addresses {
				if _, isDown := record.Down[a.IP]; a.AdminState != lb.Down && !isDown && slices.Contains(record.Written, a.IP) {
					up++
				}
			}
			for _, d := range set.Draining {
				_, wasDown := record.Down[d.IP]
				if wasDown || d.AtOnce || !slices.Contains(record.Written, d.IP) {
					continue
				}
				if drains[d.IP] = since[d.IP]; drains[d.IP].IsZero() {
					drains[d.IP] = now
				}
				isLong := now.Sub(drains[d.IP]) >= membership.LeavingTimeout
				if isDown := slices.Contains(kept.Draining, d); isDown && up == 0 && !isLong || !isDown && isLong {
					t.Fatalf("%s is Down: %v; up %d, drains since %v, now is %v", d.Node, isDown, up, drains[d.IP], now)
				}
			}
			if since = drains; !rapid.Bool().Draw(t, "written") {
				continue
			}
			written := membership.MemberRecord{Down: map[netip.Addr]membership.DownRecord{}}
			for _, a := range kept.Addresses {
				if written.Written = append(written.Written, a.IP); a.AdminState == lb.Down {
					written.Down[a.IP] = membership.DownRecord{Since: now}
				}
			}
			record = written
		}
	})
}
