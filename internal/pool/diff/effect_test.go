// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
)

// What the final read shows of overtaken writes: before, written, shown.
func TestOvertakenWrites(t *testing.T) {
	const one, two, both, other = "n1=10.0.0.1", "n2=10.0.0.2", "n1=10.0.0.1 n2=10.0.0.2", "vm=10.9.9.9"
	for about, tt := range map[string]struct {
		pools      [][3]string
		kept, lost int
	}{
		"none was":              {nil, 0, 0},
		"it is there":           {[][3]string{{one, both, both}}, 1, 0},
		"all are there":         {[][3]string{{one, both, both}, {two, one, one}}, 2, 0},
		"it was taken back":     {[][3]string{{one, both, one}}, 0, 1},
		"one was, one was not":  {[][3]string{{one, both, one}, {two, both, both}}, 1, 1},
		"another client came":   {[][3]string{{one, both, other}, {two, both, both}}, 1, 1},
		"a state was taken":     {[][3]string{{one, one + "/Down", one + "/Down"}}, 1, 0},
		"a state was not":       {[][3]string{{one, one + "/Down", one}}, 0, 1},
		"it changed nothing":    {[][3]string{{one, one, one}}, 0, 0},
		"that, and one that is": {[][3]string{{one, one, one}, {two, both, both}}, 1, 0},
	} {
		kept, lost := 0, 0
		for _, p := range tt.pools {
			managed := managedSets{written: map[netip.Addr]struct{}{}, down: map[netip.Addr]struct{}{}}
			for _, a := range addresses(p[0]) {
				managed.written[a.IP] = struct{}{}
			}
			switch c := computeChange(lb.Pool{Addresses: addresses(p[0])}, addresses(p[1]), managed, ""); {
			case c.IsEmpty():
			case c.IsAppliedIn(lb.Pool{Addresses: addresses(p[2])}):
				kept++
			default:
				lost++
			}
		}
		if kept != tt.kept || lost != tt.lost {
			t.Errorf("%s: %d kept and %d lost, want %d and %d", about, kept, lost, tt.kept, tt.lost)
		}
	}
}
