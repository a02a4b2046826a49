// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

func ipSet(text string) map[netip.Addr]struct{} {
	set := map[netip.Addr]struct{}{}
	for field := range strings.FieldsSeq(text) {
		set[netip.MustParseAddr(field)] = struct{}{}
	}
	return set
}

func TestApply(t *testing.T) {
	tests := []struct {
		name                            string
		observed, wanted, written, next string
	}{
		{"an empty pool is filled", "", "n2=10.0.0.2 n1=10.0.0.1", "", "n1=10.0.0.1 n2=10.0.0.2"},
		{"what is in sync stays as it is", "n1=10.0.0.1", "n1=10.0.0.1", "10.0.0.1", "n1=10.0.0.1"},
		{"ours that nobody wants goes", "n1=10.0.0.1 n2=10.0.0.2", "n2=10.0.0.2", "10.0.0.1 10.0.0.2", "n2=10.0.0.2"},
		{"foreign stays", "vm=10.9.9.9 n1=10.0.0.1", "n2=10.0.0.2", "10.0.0.1", "vm=10.9.9.9 n2=10.0.0.2"},
		{"an address that stands under another name keeps it", "ip-1=10.0.0.1", "n1=10.0.0.1 n2=10.0.0.2", "", "ip-1=10.0.0.1 n2=10.0.0.2"},
		{"a node whose IP changed is one removal and one addition", "n1=10.0.0.1", "n1=10.0.0.7", "10.0.0.1", "n1=10.0.0.7"},
		{"a name that a foreign entry has is not used twice", "N1=10.9.9.9", "n1=10.0.0.1", "", "N1=10.9.9.9 n1-10-0-0-1=10.0.0.1"},
		{"a wanted address that stands twice stands once", "a=10.0.0.1 b=10.0.0.1", "a=10.0.0.1", "10.0.0.1", "a=10.0.0.1"},
		{"the last of ours leaves an empty pool", "n1=10.0.0.1", "", "10.0.0.1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			observed := lb.Pool{Addresses: addresses(tt.observed)}
			got := computeChange(observed, addresses(tt.wanted), managedSets{written: ipSet(tt.written)}, "")
			if spell(got.Next.Addresses) != tt.next {
				t.Errorf("got  %q\nwant %q", spell(got.Next.Addresses), tt.next)
			}
			if got.IsEmpty() != (tt.observed == tt.next) {
				t.Errorf("none() = %v for %q → %q", got.IsEmpty(), tt.observed, tt.next)
			}
			if spell(observed.Addresses) != tt.observed {
				t.Error("the observed pool was changed")
			}
		})
	}
}

// Whatever the pool holds: afterwards it has the wanted and foreign addresses, names and IPs are
// unique, and applying again changes nothing.
func TestApplyLaws(t *testing.T) {
	pool := func(t *rapid.T, label string) []lb.Address {
		ips := rapid.SliceOfDistinct(rapid.IntRange(1, 12), rapid.ID[int]).Draw(t, label)
		var addresses []lb.Address
		for i, n := range ips {
			name := fmt.Sprintf("n%d", n)
			if rapid.Bool().Draw(t, "renamed") {
				name = fmt.Sprintf("x%d", i)
			}
			if !slices.ContainsFunc(addresses, func(a lb.Address) bool { return a.Name == name }) {
				addresses = append(addresses, lb.Address{Name: name, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})})
			}
		}
		return addresses
	}
	rapid.Check(t, func(t *rapid.T) {
		observed, wanted := lb.Pool{Addresses: pool(t, "observed")}, pool(t, "wanted")
		written := map[netip.Addr]struct{}{}
		for _, a := range pool(t, "written") {
			written[a.IP] = struct{}{}
		}
		got := computeChange(observed, wanted, managedSets{written: written}, "")

		want := sortedIPs(wanted)
		for _, a := range observed.Addresses {
			if _, own := written[a.IP]; !own && !slices.Contains(want, a.IP) {
				want = append(want, a.IP)
			}
		}
		slices.SortFunc(want, netip.Addr.Compare)
		if !slices.Equal(sortedIPs(got.Next.Addresses), want) {
			t.Fatalf("got %v, want %v", sortedIPs(got.Next.Addresses), want)
		}
		names := map[string]bool{}
		for _, a := range got.Next.Addresses {
			if names[strings.ToLower(a.Name)] {
				t.Fatalf("name %s twice", a.Name)
			}
			names[strings.ToLower(a.Name)] = true
		}
		for _, a := range wanted {
			written[a.IP] = struct{}{}
		}
		if second := computeChange(got.Next, wanted, managedSets{written: written}, ""); !second.IsEmpty() {
			t.Fatalf("applied twice: +%d -%d", len(second.addedIPs), len(second.removedIPs))
		}
	})
}

// BenchmarkApply replaces ten of a pool's 1,000 addresses.
func BenchmarkApply(b *testing.B) {
	at := func(i int) lb.Address {
		return lb.Address{Name: fmt.Sprintf("aks-pool-%04d", i), IP: netip.AddrFrom4([4]byte{10, 1, byte(i / 256), byte(i)})}
	}
	var observed lb.Pool
	var wanted []lb.Address
	written := map[netip.Addr]struct{}{}
	for i := range 1000 {
		observed.Addresses = append(observed.Addresses, at(i))
		written[at(i).IP] = struct{}{}
		wanted = append(wanted, at(i+10))
	}
	b.ReportAllocs()
	for b.Loop() {
		if c := computeChange(observed, wanted, managedSets{written: written}, ""); len(c.addedIPs) != 10 || len(c.removedIPs) != 10 {
			b.Fatalf("+%d -%d", len(c.addedIPs), len(c.removedIPs))
		}
	}
}
