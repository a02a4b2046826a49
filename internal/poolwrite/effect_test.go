// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// What a write proves about Azure, for up to two pools: before, written, shown.
func TestWhatAWriteShows(t *testing.T) {
	const one, two, both = "n1=10.0.0.1", "n2=10.0.0.2", "n1=10.0.0.1 n2=10.0.0.2"
	const down, twoDown = "n1=10.0.0.1/Down", "n1=10.0.0.1/Down n2=10.0.0.2/Down"
	for _, tt := range []struct {
		about             string
		pools             [][3]string
		addresses, states behaviour.Result
	}{
		{"taken", [][3]string{{one, both, both}}, behaviour.Accepted, ""},
		{"ignored", [][3]string{{one, both, one}}, behaviour.Ignored, ""},
		{"somebody else has written", [][3]string{{one, both, "vm=10.9.9.9"}}, "", ""},
		{"it is gone", [][3]string{{one, both, "-"}}, "", ""},
		{"one so, one so", [][3]string{{one, both, one}, {two, both, both}}, "", ""},
		{"both so", [][3]string{{one, both, one}, {two, both, two}}, behaviour.Ignored, ""},
		{"one so, of the other nothing is known", [][3]string{{one, both, one}, {two, both, "-"}}, behaviour.Ignored, ""},
		{"states taken", [][3]string{{one, down, down}}, "", behaviour.Accepted},
		{"states ignored", [][3]string{{one, down, one}}, "", behaviour.Ignored},
		{"taken back", [][3]string{{down, one, one}}, "", behaviour.Accepted},
		{"taken back and ignored", [][3]string{{down, one, down}}, "", behaviour.Ignored},
		{"one of two states", [][3]string{{both, twoDown, down + " " + two}}, "", ""},
		{"addresses and not states", [][3]string{{one, "n1=10.0.0.1/Down n2=10.0.0.2", both}}, behaviour.Accepted, behaviour.Ignored},
		{"one that joins as Down says nothing of those that are there", [][3]string{{one, "n1=10.0.0.1 n2=10.0.0.2/Down", both}}, behaviour.Accepted, ""},
	} {
		var pools []WrittenPool
		for _, p := range tt.pools {
			before := lb.Pool{Addresses: addresses(p[0])}
			mine := managedSets{written: map[netip.Addr]struct{}{}, down: map[netip.Addr]struct{}{}}
			for _, a := range before.Addresses {
				mine.written[a.IP] = struct{}{}
				if isDown(a) {
					mine.down[a.IP] = struct{}{}
				}
			}
			if p[2] != "-" {
				pools = append(pools, WrittenPool{before, computeChange(before, addresses(p[1]), mine), lb.Pool{Addresses: addresses(p[2])}})
			}
		}
		got := ClassifyEffects(pools)
		if got[wholewrite.Addresses] != tt.addresses || got[wholewrite.AdminStates] != tt.states {
			t.Errorf("%s: got %v, want addresses %q and admin states %q", tt.about, got, tt.addresses, tt.states)
		}
	}
}

// What the final read shows of overtaken writes.
func TestWhatAnOvertakenWriteShows(t *testing.T) {
	const one, two, both, other = "n1=10.0.0.1", "n2=10.0.0.2", "n1=10.0.0.1 n2=10.0.0.2", "vm=10.9.9.9"
	for about, tt := range map[string]struct {
		pools [][3]string
		want  behaviour.Result
	}{
		"none was":              {nil, ""},
		"it is there":           {[][3]string{{one, both, both}}, behaviour.Supersede},
		"all are there":         {[][3]string{{one, both, both}, {two, one, one}}, behaviour.Supersede},
		"it was taken back":     {[][3]string{{one, both, one}}, behaviour.SupersedeDiscard},
		"one was, one was not":  {[][3]string{{one, both, one}, {two, both, both}}, ""},
		"somebody else came":    {[][3]string{{one, both, other}, {two, both, both}}, ""},
		"a state was taken":     {[][3]string{{one, one + "/Down", one + "/Down"}}, behaviour.Supersede},
		"a state was not":       {[][3]string{{one, one + "/Down", one}}, behaviour.SupersedeDiscard},
		"it changed nothing":    {[][3]string{{one, one, one}}, ""},
		"that, and one that is": {[][3]string{{one, one, one}, {two, both, both}}, behaviour.Supersede},
	} {
		var pools []WrittenPool
		for _, p := range tt.pools {
			mine := managedSets{written: map[netip.Addr]struct{}{}, down: map[netip.Addr]struct{}{}}
			for _, a := range addresses(p[0]) {
				mine.written[a.IP] = struct{}{}
			}
			before := lb.Pool{Addresses: addresses(p[0])}
			pools = append(pools, WrittenPool{before, computeChange(before, addresses(p[1]), mine), lb.Pool{Addresses: addresses(p[2])}})
		}
		if got := ClassifyOverlap(pools); got != tt.want {
			t.Errorf("%s: %q, want %q", about, got, tt.want)
		}
	}
}
