// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

var (
	blue  = ClusterMark("blue")
	green = ClusterMark("green")
)

// TestPoolsOfTwoClusters: this cluster is green, with the nodes 10.0.0.1 to 10.0.0.3.
func TestPoolsOfTwoClusters(t *testing.T) {
	isNode := func(ip netip.Addr) bool { return slices.Contains(ipsOf("10.0.0.1 10.0.0.2 10.0.0.3"), ip) }
	for _, tt := range []struct {
		name, observed, wanted, record string
		managed                        bool
		next, overlap, written         string
		rejected                       bool
	}{
		{name: "a new pool", observed: "", wanted: "g1=10.0.0.1", next: "g1.weir-G=10.0.0.1", written: "10.0.0.1"},
		{name: "members of blue stay", observed: "b1.weir-B=10.1.0.1", wanted: "g1=10.0.0.1", next: "b1.weir-B=10.1.0.1 g1.weir-G=10.0.0.1", written: "10.0.0.1"},
		{name: "a takeover: an unmarked address of a node is green's", observed: "vm=10.0.0.2", wanted: "g1=10.0.0.1", next: "g1.weir-G=10.0.0.1", written: "10.0.0.1"},
		{name: "a takeover: a marked address of a deleted node is green's", observed: "g9.weir-G=10.0.0.9", wanted: "g1=10.0.0.1", next: "g1.weir-G=10.0.0.1", written: "10.0.0.1"},
		{name: "a takeover: blue has a wanted address", observed: "b1.weir-B=10.0.0.1", wanted: "g1=10.0.0.1", overlap: "10.0.0.1", rejected: true},
		{name: "a takeover: blue has the address of another node", observed: "b2.weir-B=10.0.0.2", wanted: "g1=10.0.0.1", overlap: "10.0.0.2", rejected: true},
		{
			name: "held: blue has added a wanted address", observed: "g1.weir-G=10.0.0.1 b2.weir-B=10.0.0.2", wanted: "g1=10.0.0.1 g2=10.0.0.2 g3=10.0.0.3", record: "10.0.0.1", managed: true,
			next: "g1.weir-G=10.0.0.1 b2.weir-B=10.0.0.2 g3.weir-G=10.0.0.3", overlap: "10.0.0.2", written: "10.0.0.1 10.0.0.3",
		},
		{
			name: "held: it is neither set Down nor removed", observed: "b2.weir-B=10.0.0.2", wanted: "g2=10.0.0.2/Down", record: "10.0.0.2", managed: true,
			next: "b2.weir-B=10.0.0.2", overlap: "10.0.0.2",
		},
		{name: "held since before marks: it keeps its name", observed: "g1=10.0.0.1", wanted: "g1=10.0.0.1 g2=10.0.0.2", record: "10.0.0.1", managed: true, next: "g1=10.0.0.1 g2.weir-G=10.0.0.2", written: "10.0.0.1 10.0.0.2"},
		{name: "held since before marks: its node leaves", observed: "g9=10.0.0.9 vm=10.0.0.8", wanted: "", record: "10.0.0.9", managed: true, next: "vm=10.0.0.8"},
		{name: "held: its node leaves", observed: "b2.weir-B=10.0.0.2", wanted: "", record: "10.0.0.2", managed: true, next: "b2.weir-B=10.0.0.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			observed := lb.Pool{Addresses: markedAddresses(tt.observed)}
			want := Desired{
				Addresses: addresses(tt.wanted), IsOwnAddress: isNode, ClusterMark: green,
				Record: Record{Written: ipsOf(tt.record), Adopted: tt.managed},
			}
			r := NewResult(Memory{}, false)
			_, _, err := r.PrepareAddresses(observed, want, true)
			var fault *armerror.Fault
			if tt.rejected != (r.Outcome == Rejected) || tt.rejected != (errors.As(err, &fault) && fault.Code == CodeOverlappingNodes) {
				t.Errorf("outcome %s, %v", r.Outcome, err)
			}
			if !slices.Equal(r.Overlapping, ipsOf(tt.overlap)) {
				t.Errorf("overlap %v, want %s", r.Overlapping, tt.overlap)
			}
			planned, err := DryRun(observed, want, true)
			if tt.rejected != (err != nil) {
				t.Errorf("dry run: %v", err)
			}
			if tt.rejected {
				return
			}
			if next := markedAddresses(tt.next); !slices.Equal(r.Change.Next.Addresses, next) || !slices.Equal(planned.Addresses, next) {
				t.Errorf("next %v, planned %v, want %v", r.Change.Next.Addresses, planned.Addresses, next)
			}
			if !slices.Equal(r.written, ipsOf(tt.written)) {
				t.Errorf("written %v, want %s", r.written, tt.written)
			}
		})
	}
}

// markedAddresses replaces the marks of blue (B) and green (G).
func markedAddresses(text string) []lb.Address {
	return addresses(strings.NewReplacer(".weir-B", ".weir-"+blue, ".weir-G", ".weir-"+green).Replace(text))
}

func ipsOf(text string) (ips []netip.Addr) {
	for _, ip := range strings.Fields(text) {
		ips = append(ips, netip.MustParseAddr(ip))
	}
	return ips
}

// Names of any length are unique, and keep their mark.
func TestLawMarkedNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		taken := map[string]struct{}{}
		base := rapid.StringMatching(`[a-z][a-z0-9.-]{0,120}`).Draw(t, "base")
		for i := range 5 {
			name := base + fmt.Sprint(i/2)
			got := uniqueName(taken, lb.Address{Name: name, IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i / 3)})}, green)
			if len(got) > maxAddressName || markOf(got) != green {
				t.Errorf("%s", got)
			}
		}
		if len(taken) != 5 {
			t.Errorf("%v", taken)
		}
	})
}

// Of a long name only the start is kept. Names stay unique, because the whole address follows.
func TestNamesOfLongNodesAreUnique(t *testing.T) {
	var wanted []lb.Address
	for n := range 4 {
		wanted = append(wanted, lb.Address{Name: strings.Repeat("n", 70) + strconv.Itoa(n), IP: netip.MustParseAddr(fmt.Sprintf("2001:db8:1234:5678:9abc:def0:1234:567%d", n))})
	}
	names := map[string]bool{}
	for _, a := range computeChange(lb.Pool{}, wanted, managedSets{}, green).Next.Addresses {
		if names[a.Name] = true; len(a.Name) > maxAddressName || markOf(a.Name) != green {
			t.Errorf("name %s", a.Name)
		}
	}
	if len(names) != len(wanted) {
		t.Errorf("%d names of %d nodes", len(names), len(wanted))
	}
}
