// SPDX-License-Identifier: Apache-2.0

// Package lb is the vocabulary of Azure load balancers: ids, backend pools and
// backend addresses. It holds values alone; it does no I/O and reads no clock.
package lb

import "net/netip"

// Family is the IP family of a backend pool. Azure keeps one family a pool.
type Family string

// The two families, spelled as Kubernetes spells them.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// Of reports whether addr belongs to the family.
func (f Family) Of(addr netip.Addr) bool {
	if f == IPv6 {
		return addr.Is6() && !addr.Is4In6()
	}
	return f == IPv4 && addr.Is4()
}

// NoEtag stands in for the etag of what was read and shown without one. Azure shows one always; what
// answers in its place may not. HTTP has it for whatever is there.
const NoEtag = "*"

// Pool is a backend pool as Azure shows it, or as it shall become.
// The zero Etag means that it was never read.
type Pool struct {
	ID   PoolID
	Etag string
	// VirtualNetwork is the ARM id set at the pool itself; empty where the
	// addresses carry their own, or where the pool is empty.
	VirtualNetwork string
	Addresses      []Address
	// Provisioning is the state that Azure shows; empty if it shows none.
	Provisioning Provisioning
	// NIC is true for a pool whose entries are network interfaces. Azure does
	// not mix them with IP addresses in one pool.
	NIC bool
	// Outbound is true for a pool that an outbound rule names: it is the way out of its members.
	Outbound bool
	// Origin is the adapter's own decoding of what it read. It travels with the
	// pool so that a write preserves the fields that Weir does not model; only
	// the adapter that made it looks inside.
	Origin any
}

// Provisioning is how far Azure is with the last write to a pool.
type Provisioning string

// The states that matter. While a write is under way the pool shows content that
// may be taken back yet; after a failed one what it shows may not be what is in force.
const (
	Succeeded Provisioning = "Succeeded"
	Updating  Provisioning = "Updating"
	Failed    Provisioning = "Failed"
)

// Address is one entry of an IP-based backend pool.
type Address struct {
	// Name is unique within the pool; Weir uses the node's name.
	Name string
	IP   netip.Addr
	// VirtualNetwork is the ARM id set at this address; empty where the pool has one.
	VirtualNetwork string
	// AdminState is what Azure shows: "", "None", "Up" or "Down". Of a wanted address it is
	// Down, or empty where the probes decide.
	AdminState string
	// Interface is the ARM id of the IP configuration of the network interface that an entry
	// stands for; empty where it stands for an address. Machine is the key of the virtual
	// machine that has the interface, once Azure was asked; see MachineKey.
	Interface, Machine string
}

// Admin states of an address. Down takes no new flows, whatever the probes say; with None,
// which is what an address has that nobody set, they decide.
const (
	Down = "Down"
	None = "None"
)
