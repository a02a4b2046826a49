// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"

	"weir.dev/weir/internal/lb"
)

// Desired is the membership of a pool, as the cluster wants it, and what is on record of it.
type Desired struct {
	Addresses []lb.Address
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
	// Taken is true once the pool was taken.
	Taken bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down      []netip.Addr
	Desired, Observed  int
	Add, Remove, Alter int
	// States is true if admin states alone are written, of network interfaces: that does not
	// take the pool.
	States bool
}
