// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Desired is the membership of a pool, as the cluster wants it, and what is on record of it.
type Desired struct {
	Addresses []lb.Address
	// Kept are those of Addresses that stay where they are in the pool, and are not added.
	Kept []netip.Addr
	// Twins are further nodes that have an address of Addresses, and another machine. Awaited are the
	// addresses of nodes whose machine is yet to be told: what has one of them stays where it is.
	Twins   []lb.Address
	Awaited []netip.Addr
	// Ours reports whether an address that stands in the pool when Weir first
	// takes it is one of ours: those of this cluster's nodes, and in a pool that Weir
	// made all, unless it knows what it has put there.
	Ours func(netip.Addr) bool
	// Alone is true for a pool that Weir made: nobody else sets nodes of this cluster Down there.
	Alone bool
	// AddressOf returns the address of the node that a machine is, by which it is known in
	// the ledger; false if it is none of the cluster's.
	AddressOf func(machine string) (netip.Addr, bool)
	// Machines is there for a pool whose members are network interfaces.
	Machines *Machines
	// Recorded is what the ledger holds of the pool.
	Recorded Recorded
}

// Recorded is what the ledger holds of a pool.
type Recorded struct {
	// Written are the addresses that Weir put there, Down those of them that it took out of
	// rotation.
	Written, Down []netip.Addr
	// Instances are the addresses of those of Written that instances of uniform scale sets have, by
	// machine: Azure does not tell them.
	Instances map[string]netip.Addr
	// Taken is true once the pool was taken.
	Taken bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down      []netip.Addr
	Instances          map[string]netip.Addr
	Desired, Observed  int
	Add, Remove, Alter int
	// States is true if admin states alone are written, of network interfaces: that does not
	// take the pool.
	States bool
}

// in returns what is wanted of a pool that was read: what is kept is wanted where it is.
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
