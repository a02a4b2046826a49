// SPDX-License-Identifier: Apache-2.0

package diff

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

func some(ips ...int) (m MemberList) {
	for _, i := range ips {
		m.Count, m.Listed = m.Count+1, append(m.Listed, nodeIP(i))
	}
	return m
}

// A pool that was read reports missing, surplus and foreign members, sorted and unique; an unread
// one reports nothing.
func TestPoolDifferences(t *testing.T) {
	written := Record{Adopted: true, Written: []netip.Addr{nodeIP(1), nodeIP(2), nodeIP(3)}}
	for _, tt := range []struct {
		about          string
		pool, want     lb.Pool
		missing        MemberList
		surplus, alien MemberList
	}{
		{"in sync", poolOf(1, 2), poolOf(1, 2), some(), some(), some()},
		{"all at once", poolOf(9, 3, 1, 8, 2), poolOf(6, 1, 5), some(5, 6), some(2, 3), some(8, 9)},
		{"an address twice", poolOf(1, 1, 2), poolOf(1, 2), some(), some(1), some()},
	} {
		r := NewResult(Memory{}, false)
		if r.Difference() != nil {
			t.Errorf("%s: it was not read, and differs", tt.about)
		}
		want := Desired{Addresses: tt.want.Addresses, Record: written, IsOwnAddress: func(netip.Addr) bool { return false }}
		if _, _, err := r.PrepareAddresses(tt.pool, want, false); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(*r.Difference()), fmt.Sprint(Difference{tt.missing, tt.surplus, tt.alien}); got != want {
			t.Errorf("%s: %s, want %s", tt.about, got, want)
		}
	}
}

// The number of listed members is limited, the count is not.
func TestNamedMembersAreBounded(t *testing.T) {
	var items []int
	for i := range MaxListed + 7 {
		items = append(items, i)
	}
	slices.Reverse(items)
	r := NewResult(Memory{}, false)
	if _, _, err := r.PrepareAddresses(lb.Pool{}, Desired{Addresses: poolOf(items...).Addresses, IsOwnAddress: func(netip.Addr) bool { return false }}, false); err != nil {
		t.Fatal(err)
	}
	if m := r.Difference().Missing; m.Count != len(items) || len(m.Listed) != MaxListed || m.Listed[0] != nodeIP(0) || m.Listed[MaxListed-1] != nodeIP(MaxListed-1) {
		t.Errorf("%d, named %v", m.Count, m.Listed)
	}
}

// For a pool of network interfaces, joining and leaving machines are listed by node address, and
// foreign ones counted.
func TestInterfacePoolDifferences(t *testing.T) {
	pool := lb.Pool{NIC: true, Addresses: []lb.Address{
		{Interface: "nic-n1", Machine: machineOf("n1").Key()}, {Interface: "theirs", Machine: machineOf("theirs").Key()},
	}}
	want := Desired{
		Addresses: []lb.Address{{Name: "n2", IP: nodeIP(2)}}, IsOwnAddress: func(ip netip.Addr) bool { return ip == nodeIP(1) },
		AddressOf: func(machine string) (netip.Addr, bool) { return nodeIP(1), machine == machineOf("n1").Key() },
		Machines:  &Machines{Family: lb.IPv4, Lookup: func(node string) (nic.Machine, error) { return machineOf(node), nil }},
	}
	r := NewResult(Memory{}, false)
	if _, _, err := r.PrepareMembers(pool, want, false); err != nil {
		t.Fatal(err)
	}
	got := r.Difference()
	if fmt.Sprint(got.Missing, got.Unwanted, got.Foreign) != fmt.Sprint(some(2), some(1), MemberList{Count: 1}) {
		t.Errorf("%+v", *got)
	}
}
