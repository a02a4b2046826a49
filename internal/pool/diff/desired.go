// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Desired is a pool's desired membership and its record.
type Desired struct {
	Addresses []lb.Address
	// Retained Addresses stay if present, but are not added.
	Retained []netip.Addr
	// Further nodes with an address of Addresses but another machine, and addresses of nodes with
	// an unknown machine: members with one of these stay.
	SharedAddresses []lb.Address
	UnresolvedIPs   []netip.Addr
	// IsManaged reports whether an address found on takeover is Weir's: a node's, or any in a pool that Weir made.
	IsManaged func(netip.Addr) bool
	// IsExclusive is true if no other client sets nodes Down: Weir made the pool.
	IsExclusive bool
	// ClusterMark marks the members that this cluster writes; "" if no other cluster writes the pool.
	ClusterMark string
	// AddressOf returns the recorded address of a machine's node; false if it is not the cluster's.
	AddressOf func(machine string) (netip.Addr, bool)
	Machines  *Machines
	Record    Record
}

// Record is a pool's persisted record.
type Record struct {
	// Written are the addresses that Weir added, Down those that it set Down.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to their addresses, which Azure does not report.
	Instances map[string]netip.Addr
	// Managed is true after takeover.
	Managed bool
}

// Intent is recorded before a write.
type Intent struct {
	Written, Down       []netip.Addr
	Instances           map[string]netip.Addr
	Desired, Observed   int
	Add, Remove, Update int
	// OnlyStates is true for admin states of network interfaces only, which is no takeover.
	OnlyStates bool
}

func (d Desired) limitRetained(shown []lb.Address) Desired {
	if len(d.Retained) == 0 {
		return d
	}
	there := make(map[netip.Addr]bool, len(shown))
	for _, a := range shown {
		there[a.IP] = true
	}
	d.Addresses = slices.DeleteFunc(slices.Clone(d.Addresses), func(a lb.Address) bool { return !there[a.IP] && slices.Contains(d.Retained, a.IP) })
	return d
}
