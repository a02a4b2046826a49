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

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// parseSet parses "a b! c@3 d@": b drains by user request, the eviction of c was announced three seconds after
// noon, that of d at an unknown time.
func parseSet(text string) membership.Set {
	var nodes []membership.Node
	for i, word := range strings.Fields(text) {
		n := membership.Node{Name: word, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i%250 + 1)})}}
		if name, ok := strings.CutSuffix(word, "!"); ok {
			n.Name, n.DrainReason = name, "out-of-service"
		} else if name, at, ok := strings.Cut(word, "@"); ok {
			n.Name, n.DrainReason, n.EvictionAnnounced = name, "spot-eviction", true
			if seconds, err := time.ParseDuration(at + "s"); err == nil {
				n.EvictionAnnouncedAt = noon.Add(seconds)
			}
		}
		nodes = append(nodes, n)
	}
	return membership.OfNodes(slices.Values(nodes), lb.IPv4)
}

func drainNames(drains []membership.Drain) string {
	names := make([]string, len(drains))
	for i, d := range drains {
		names[i] = d.Node
	}
	return strings.Join(names, " ")
}

func down(s membership.Set) string {
	var names []string
	for _, a := range s.Addresses {
		if a.AdminState == lb.Down {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestAnnouncedEvictionsLeaveAFloor(t *testing.T) {
	for _, tt := range []struct {
		members      string
		percent      int
		down, spared string
	}{
		{"a b c d", 50, "", ""},
		{"a@1 b c d", 50, "a", ""},
		{"a@1 b@2 c d", 50, "a b", ""},
		{"a@1 b@2 c@3 d", 50, "a b", "c"},
		{"a@3 b@2 c@1 d", 50, "b c", "a"},
		{"a@1 b@1 c@1 d@1", 50, "a b", "c d"},
		{"a@1 b@2 c", 50, "a", "b"}, // half of three is two
		{"a@1 b@2", 50, "a", "b"},
		{"a@1", 50, "", "a"},
		{"a@1", 1, "", "a"},
		{"a@1 b@2 c@3 d@4", 1, "a b c", "d"},
		{"a@1 b@2 c@3 d@4", 100, "", "a b c d"},
		{"a@1 b@2 c@3 d@4", 0, "a b c d", ""},

		{"a! b! c! d!", 50, "a b c d", ""}, // user requests
		{"a! b! c@1 d", 50, "a b", "c"},
		{"a! b! c! d@1", 50, "a b c", "d"},
		{"a! b@1 c d", 50, "a b", ""},
		{"a! b@1 c@2 d", 50, "a b", "c"},
		{"b@1 c@ d", 50, "c", "b"}, // an unknown time counts as earlier
		{"", 50, "", ""},
	} {
		before := parseSet(tt.members)
		as := down(before)
		got := before.KeepMinAvailable(tt.percent)
		if down(got) != tt.down || drainNames(got.Draining) != tt.down || drainNames(got.KeptUp) != tt.spared {
			t.Errorf("%q at %d%%: Down %q (%q), spared %q; want %q and %q",
				tt.members, tt.percent, down(got), drainNames(got.Draining), drainNames(got.KeptUp), tt.down, tt.spared)
		}
		if down(before) != as {
			t.Errorf("%q: the set given was changed", tt.members)
		}
	}
}

// Property: user requests always apply, the floor holds with the fewest spared members, and a new
// announcement does not affect earlier ones.
func TestLawOfTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "members")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprintf("n%02d%s", i, rapid.SampledFrom([]string{"", "", "!", "@", "@1", "@2", "@3"}).Draw(t, "state"))
		}
		all := parseSet(strings.Join(words, " "))
		set := all.KeepMinAvailable(percent)
		people := 0
		for _, d := range all.Draining {
			if !d.EvictionAnnounced {
				people++
			}
		}
		up, need := n-len(set.Draining), max(1, (n*percent+99)/100)
		if len(set.Draining)+len(set.KeptUp) != len(all.Draining) {
			t.Fatalf("%v: %d drain, %d Down and %d spared", words, len(all.Draining), len(set.Draining), len(set.KeptUp))
		}
		if len(set.Draining) > people && up < need {
			t.Fatalf("%v: %d of %d are up, and %d%% have to be", words, up, n, percent)
		}
		if len(set.KeptUp) > 0 && up > need {
			t.Fatalf("%v: %d of %d are up, though %d are enough", words, up, n, need)
		}
		healthy := slices.IndexFunc(words, func(w string) bool { return !strings.ContainsAny(w, "!@") })
		if healthy < 0 {
			return
		}
		words[healthy] += "@4"
		next := parseSet(strings.Join(words, " ")).KeepMinAvailable(percent)
		for _, d := range set.Draining {
			if !strings.Contains(" "+drainNames(next.Draining)+" ", " "+d.Node+" ") {
				t.Fatalf("%v: %s is up again for another announcement", words, d.Node)
			}
		}
	})
}
