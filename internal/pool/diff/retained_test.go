// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// A kept member remains, with its desired admin state, and is not restored if another client
// removed it.
func TestKeptMembersKeepTheirOrder(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	machine := func(n int) string {
		return fmt.Sprintf("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n%d", n)
	}
	want := Desired{
		Addresses: []lb.Address{{Name: "n1", IP: a}, {Name: "n2", IP: b, AdminState: lb.Down}, {Name: "n3", IP: c}}, Retained: []netip.Addr{b, c},
		IsOwnAddress: func(netip.Addr) bool { return false }, Record: Record{Written: []netip.Addr{b, c}, Adopted: true},
		AddressOf: func(m string) (netip.Addr, bool) {
			for n, ip := range []netip.Addr{a, b, c} {
				if m == machine(n+1) {
					return ip, true
				}
			}
			return netip.Addr{}, false
		},
	}
	var r Result
	write, _, err := r.PrepareAddresses(lb.Pool{Addresses: []lb.Address{{Name: "n2", IP: b}}}, want, true)
	if got := fmt.Sprint(r.Change.Next.Addresses); err != nil || !write || got != fmt.Sprint([]lb.Address{{Name: "n2", IP: b, AdminState: lb.Down}, {Name: "n1", IP: a}}) {
		t.Errorf("the pool becomes %s (write %v, %v)", got, write, err)
	}
	if fmt.Sprint(r.written) != "[10.0.0.1 10.0.0.2]" {
		t.Errorf("then on record: %v", r.written)
	}

	want.Retained = []netip.Addr{c}
	r = Result{}
	if _, _, err = r.PrepareAddresses(lb.Pool{Addresses: []lb.Address{{Name: "n1", IP: a}, {Name: "n2", IP: b, AdminState: lb.Down}}}, want, true); !r.Change.IsEmpty() || err != nil {
		t.Errorf("one alone is kept where it is not: %+v, %v", r.Change.Next.Addresses, err)
	}
	if _, next, err := DryRunMembers(lb.Pool{NIC: true, Addresses: []lb.Address{{Machine: machine(1)}, {Machine: machine(2)}}}, want); len(next.Addresses) != 2 || err != nil {
		t.Errorf("the dry run adds it: %+v, %v", next.Addresses, err)
	}

	want.Retained = []netip.Addr{b, c}
	want.Machines = &Machines{Family: lb.IPv4, Lookup: func(node string) (nic.Machine, error) {
		return nic.ParseMachine("azure://" + machine(int(node[1]-'0')))
	}}
	r = Result{}
	write, _, err = r.PrepareMembers(lb.Pool{NIC: true, Addresses: []lb.Address{{Name: "i2", Interface: "i2", Machine: machine(2)}}}, want, true)
	if err != nil || !write || r.Change.Next.Addresses[0].AdminState != lb.Down || len(r.MachineTarget.Target.Members) != 2 || len(r.MachineTarget.Target.ToRemove) != 0 || len(r.MachineTarget.addresses) != 1 {
		t.Errorf("write %v, %v: %+v; hand over %+v, joins %v", write, err, r.Change.Next.Addresses, r.MachineTarget.Target, r.MachineTarget.addresses)
	}
}
