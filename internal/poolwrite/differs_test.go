// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

func poolOf(ips ...int) (pool lb.Pool) {
	for _, i := range ips {
		pool.Addresses = append(pool.Addresses, lb.Address{Name: fmt.Sprint("a", i), IP: nodeIP(i)})
	}
	return pool
}

func some(ips ...int) (m Members) {
	for _, i := range ips {
		m.Count, m.Named = m.Count+1, append(m.Named, nodeIP(i))
	}
	return m
}

// A pool that was read reports missing, surplus and foreign members, sorted and unique; an unread
// one reports nothing.
func TestHowAPoolDiffers(t *testing.T) {
	written := Recorded{Taken: true, Written: []netip.Addr{nodeIP(1), nodeIP(2), nodeIP(3)}}
	for _, tt := range []struct {
		about          string
		pool, want     lb.Pool
		missing        Members
		surplus, alien Members
	}{
		{"level", poolOf(1, 2), poolOf(1, 2), some(), some(), some()},
		{"all at once", poolOf(9, 3, 1, 8, 2), poolOf(6, 1, 5), some(5, 6), some(2, 3), some(8, 9)},
		{"an address twice", poolOf(1, 1, 2), poolOf(1, 2), some(), some(1), some()},
	} {
		r := Begin(Memory{}, false)
		if r.Differs() != nil {
			t.Errorf("%s: it was not read, and differs", tt.about)
		}
		want := Desired{Addresses: tt.want.Addresses, Recorded: written, Ours: func(netip.Addr) bool { return false }}
		if _, _, err := r.Prepare(tt.pool, want, false); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(*r.Differs()), fmt.Sprint(Differs{tt.missing, tt.surplus, tt.alien}); got != want {
			t.Errorf("%s: %s, want %s", tt.about, got, want)
		}
	}
}

// The number of listed members is limited, the count is not.
func TestHowManyMembersAreNamed(t *testing.T) {
	var all []int
	for i := range MostNamed + 7 {
		all = append(all, i)
	}
	slices.Reverse(all)
	r := Begin(Memory{}, false)
	if _, _, err := r.Prepare(lb.Pool{}, Desired{Addresses: poolOf(all...).Addresses, Ours: func(netip.Addr) bool { return false }}, false); err != nil {
		t.Fatal(err)
	}
	if m := r.Differs().Missing; m.Count != len(all) || len(m.Named) != MostNamed || m.Named[0] != nodeIP(0) || m.Named[MostNamed-1] != nodeIP(MostNamed-1) {
		t.Errorf("%d, named %v", m.Count, m.Named)
	}
}

// For a pool of network interfaces, joining and leaving machines are listed by node address, and
// foreign ones counted.
func TestHowAPoolOfInterfacesDiffers(t *testing.T) {
	pool := lb.Pool{NIC: true, Addresses: []lb.Address{
		{Interface: "nic-n1", Machine: machineOf("n1").Key()}, {Interface: "theirs", Machine: machineOf("theirs").Key()},
	}}
	want := Desired{
		Addresses: []lb.Address{{Name: "n2", IP: nodeIP(2)}}, Ours: func(ip netip.Addr) bool { return ip == nodeIP(1) },
		AddressOf: func(machine string) (netip.Addr, bool) { return nodeIP(1), machine == machineOf("n1").Key() },
		Machines:  &Machines{Family: lb.IPv4, Of: func(node string) (nic.Machine, error) { return machineOf(node), nil }},
	}
	r := Begin(Memory{}, false)
	if _, _, err := r.PrepareMembers(pool, want, false); err != nil {
		t.Fatal(err)
	}
	got := r.Differs()
	if fmt.Sprint(got.Missing, got.Surplus, got.Foreign) != fmt.Sprint(some(2), some(1), Members{Count: 1}) {
		t.Errorf("%+v", *got)
	}
}
