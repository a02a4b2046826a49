// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

func TestApplyAdminStates(t *testing.T) {
	tests := []struct {
		name                   string
		observed, wanted, down string // down is the record
		next, downNow          string // Down by Weir afterwards
		unseen                 bool
	}{
		{"a node that drains is set Down", "n1=10.0.0.1 n2=10.0.0.2", "n1=10.0.0.1/Down n2=10.0.0.2", "", "n1=10.0.0.1/Down n2=10.0.0.2", "10.0.0.1", false},
		{"it stays so", "n1=10.0.0.1/Down", "n1=10.0.0.1/Down", "10.0.0.1", "n1=10.0.0.1/Down", "10.0.0.1", false},
		{"one that drains no more is taken back", "n1=10.0.0.1/Down", "n1=10.0.0.1", "10.0.0.1", "n1=10.0.0.1/None", "", false},
		{"one that joins while it drains joins as Down", "", "n1=10.0.0.1/Down", "", "n1=10.0.0.1/Down", "10.0.0.1", false},
		{"what another client set Down stays so", "n1=10.0.0.1/Down", "n1=10.0.0.1", "", "n1=10.0.0.1/Down", "", false},
		{"and is not ours when the node drains, too", "n1=10.0.0.1/Down", "n1=10.0.0.1/Down", "", "n1=10.0.0.1/Down", "", false},
		{"a state that another client set gives way to Down", "n1=10.0.0.1/Up", "n1=10.0.0.1/Down", "", "n1=10.0.0.1/Down", "10.0.0.1", false},
		{"and stays otherwise", "n1=10.0.0.1/Up", "n1=10.0.0.1", "10.0.0.1", "n1=10.0.0.1/Up", "", true},
		{"what is foreign keeps its state", "vm=10.9.9.9/Down", "n1=10.0.0.1", "", "vm=10.9.9.9/Down n1=10.0.0.1", "", false},
		{"a change of the members resets none", "n1=10.0.0.1/Down n2=10.0.0.2/Down", "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3", "10.0.0.1", "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3", "10.0.0.1", false},
		{"a write of Down that was recorded and is not seen may land yet", "n1=10.0.0.1", "n1=10.0.0.1", "10.0.0.1", "n1=10.0.0.1", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			observed := lb.Pool{Addresses: addresses(tt.observed)}
			managed := managedSets{written: ipSet(tt.down), down: ipSet(tt.down)}
			got := computeChange(observed, addresses(tt.wanted), managed, "")
			if spell(got.Next.Addresses) != tt.next || got.IsEmpty() != (tt.observed == tt.next) {
				t.Errorf("got  %q, none() %v\nwant %q", spell(got.Next.Addresses), got.IsEmpty(), tt.next)
			}
			if fmt.Sprint(got.managedDown) != "["+tt.downNow+"]" || got.hasExtraRecords != tt.unseen {
				t.Errorf("%v are Down by us, unseen %v; want [%s], %v", got.managedDown, got.hasExtraRecords, tt.downNow, tt.unseen)
			}
			if !got.IsAppliedIn(got.Next) {
				t.Error("the pool as it was written does not show the write")
			}
			off := computeChange(observed, addresses(tt.wanted), managedSets{written: ipSet(tt.down)}, "")
			if off.updateCount > 0 || len(off.managedDown) > 0 || off.hasExtraRecords {
				t.Errorf("without admin states: %+v", off)
			}
			if spell(observed.Addresses) != tt.observed {
				t.Error("the observed pool was changed")
			}
		})
	}
}

// A response with the addresses but not the admin states proves nothing.
func TestAnAnswerHasToShowOurAdminStates(t *testing.T) {
	managed := managedSets{down: ipSet("10.0.0.2")}
	c := computeChange(lb.Pool{Addresses: addresses("n1=10.0.0.1 n2=10.0.0.2/Down n3=10.0.0.3 vm=10.0.0.9/Down")},
		addresses("n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3"), managed, "")
	for shown, want := range map[string]bool{
		"n1=10.0.0.1/Down n2=10.0.0.2/None n3=10.0.0.3 vm=10.0.0.9/Down": true,
		"n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3/Down vm=10.0.0.9":      true, // n3 and vm are foreign
		"n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3 vm=10.0.0.9/Down":           false,
		"n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3 vm=10.0.0.9/Down": false,
		"n1=10.0.0.1/Down n2=10.0.0.2 vm=10.0.0.9/Down":                  false,
	} {
		if got := c.IsAppliedIn(lb.Pool{Addresses: addresses(shown)}); got != want {
			t.Errorf("%s: %v", shown, got)
		}
	}
}

// Whatever the start: afterwards exactly the draining nodes are Down, except what others set; no
// other state changes; and applying again changes nothing.
func TestLawAdminStates(t *testing.T) {
	states := []string{"", lb.None, "Up", lb.Down}
	rapid.Check(t, func(t *rapid.T) {
		var observed lb.Pool
		var wanted []lb.Address
		down := map[netip.Addr]struct{}{}
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			a := lb.Address{Name: fmt.Sprintf("n%d", i), IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}
			if rapid.Bool().Draw(t, "wanted") {
				w := a
				w.AdminState = rapid.SampledFrom([]string{"", lb.Down}).Draw(t, "to be")
				wanted = append(wanted, w)
			}
			if rapid.Bool().Draw(t, "observed") {
				a.AdminState = rapid.SampledFrom(states).Draw(t, "state")
				observed.Addresses = append(observed.Addresses, a)
			}
			if rapid.Bool().Draw(t, "ours") {
				down[a.IP] = struct{}{}
			}
		}
		got := computeChange(observed, wanted, managedSets{written: maps.Clone(down), down: maps.Clone(down)}, "")
		old := map[netip.Addr]string{}
		for _, a := range observed.Addresses {
			old[a.IP] = a.AdminState
		}
		for _, a := range got.Next.Addresses {
			i := slices.IndexFunc(wanted, func(w lb.Address) bool { return w.IP == a.IP })
			_, byUs := down[a.IP]
			switch {
			case i < 0 && a.AdminState != old[a.IP]:
				t.Fatalf("%s is foreign and becomes %q", a.IP, a.AdminState)
			case i >= 0 && wanted[i].AdminState == lb.Down && a.AdminState != lb.Down:
				t.Fatalf("%s drains and is %q", a.IP, a.AdminState)
			case i >= 0 && wanted[i].AdminState == "" && a.AdminState == lb.Down && (byUs || old[a.IP] != lb.Down):
				t.Fatalf("%s does not drain, and is Down by us", a.IP)
			}
		}
		after := map[netip.Addr]struct{}{}
		for _, ip := range got.managedDown {
			after[ip] = struct{}{}
		}
		if second := computeChange(got.Next, wanted, managedSets{written: after, down: after}, ""); !second.IsEmpty() || second.hasExtraRecords || !slices.Equal(sortIPs(second.managedDown), sortIPs(got.managedDown)) {
			t.Fatalf("applied twice: %+v", second)
		}
	})
}
