// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Desired is the desired membership of a pool and its record.
type Desired struct {
	Addresses []lb.Address
	// Kept are the Addresses that stay if present but are not added.
	Kept []netip.Addr
	// Twins are further nodes that share an address of Addresses but have another machine. Awaited
	// are addresses of nodes whose machine is not known yet; members with one of them stay.
	Twins   []lb.Address
	Awaited []netip.Addr
	// Ours reports whether Weir manages an address that it finds when it first takes over the pool:
	// an address of the cluster's nodes, or, in a pool that Weir made without a record of its
	// content, any address.
	Ours func(netip.Addr) bool
	// Alone is true for a pool that Weir made: no other client sets this cluster's nodes Down
	// there.
	Alone bool
	// AddressOf returns the address by which the record knows a machine's node; false if it is not
	// a node of the cluster.
	AddressOf func(machine string) (netip.Addr, bool)
	// Machines is set for a pool of network interfaces.
	Machines *Machines
	// Recorded is the pool's record.
	Recorded Recorded
}

// Recorded is what is persisted about a pool.
type Recorded struct {
	// Written are the addresses that Weir added; Down is the subset that it set Down.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to their addresses among Written, which Azure
	// does not report.
	Instances map[string]netip.Addr
	// Taken is true once Weir has taken over the pool.
	Taken bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down      []netip.Addr
	Instances          map[string]netip.Addr
	Desired, Observed  int
	Add, Remove, Alter int
	// States is true if only admin states of network interfaces are written, which does not take
	// over the pool.
	States bool
}

// in returns the desired state for a pool that was read: Kept addresses are wanted only if present.
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
