// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Desired is a pool's desired membership and its record.
type Desired struct {
	Addresses []lb.Address
	// Kept Addresses stay if present, but are not added.
	Kept []netip.Addr
	// Further nodes with an address of Addresses but another machine, and addresses of nodes with
	// an unknown machine: members with one of these stay.
	Twins   []lb.Address
	Awaited []netip.Addr
	// Ours reports whether Weir manages an address found on takeover: those of the cluster's nodes,
	// or all in a pool that Weir made without a record of its content.
	Ours func(netip.Addr) bool
	// Alone is true if no other client sets nodes Down: Weir made the pool.
	Alone bool
	// AddressOf returns the recorded address of a machine's node; false if it is not the cluster's.
	AddressOf func(machine string) (netip.Addr, bool)
	Machines  *Machines
	Recorded  Recorded
}

// Recorded is a pool's persisted record.
type Recorded struct {
	// Written are the addresses that Weir added, Down those that it set Down.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to their addresses, which Azure does not
	// report.
	Instances map[string]netip.Addr
	// Taken is true after takeover.
	Taken bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down      []netip.Addr
	Instances          map[string]netip.Addr
	Desired, Observed  int
	Add, Remove, Alter int
	// States is true for admin states of network interfaces only, which is no takeover.
	States bool
}

// in removes retained addresses that are not present.
func (d Desired) in(shown []lb.Address) Desired {
	if len(d.Kept) == 0 {
		return d
	}
	there := make(map[netip.Addr]bool, len(shown))
	for _, a := range shown {
		there[a.IP] = true
	}
	d.Addresses = slices.DeleteFunc(slices.Clone(d.Addresses), func(a lb.Address) bool { return !there[a.IP] && slices.Contains(d.Kept, a.IP) })
	return d
}
