// SPDX-License-Identifier: Apache-2.0

// Package lb has the types of Azure load balancers and their network resources. They are plain
// values without I/O or clocks.
package lb

import "net/netip"

// Family is the IP family of a backend pool; a pool has exactly one.
type Family string

// IP families in the spelling of Kubernetes.
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

// NoEtag is the etag of a response without one, which Azure never sends, but another server may. In
// If-Match it matches any version.
const NoEtag = "*"

// Pool is a backend pool, observed or desired. An empty Etag means that it was not read.
type Pool struct {
	ID   PoolID
	Etag string
	// VirtualNetwork is the ARM ID on the pool itself; empty if the addresses have their own, or if
	// the pool is empty.
	VirtualNetwork string
	Addresses      []Address
	// Provisioning is Azure's state; may be empty.
	Provisioning Provisioning
	// NIC is set for a pool of network interfaces. Azure does not mix them with IP addresses.
	NIC bool
	// Outbound is set for a pool of an outbound rule: its members use it for outbound flows.
	Outbound bool
	// Origin is the adapter's document that was read. A write uses it to retain properties that
	// Weir does not model.
	Origin any
}

// Provisioning is the state of the last write.
type Provisioning string

// Provisioning states. While Updating, the shown content may be rolled back; when Failed, it may
// not be in effect.
const (
	Succeeded Provisioning = "Succeeded"
	Updating  Provisioning = "Updating"
	Failed    Provisioning = "Failed"
)

// Address is an entry of a backend pool.
type Address struct {
	// Name is unique within the pool; Weir uses the node name.
	Name string
	IP   netip.Addr
	// VirtualNetwork is the ARM ID on this address; empty if the pool has one.
	VirtualNetwork string
	// AdminState is "", "None", "Up" or "Down" when observed; Down or "" (probes decide) when
	// desired.
	AdminState string
	// Interface is the ARM ID of the network interface's IP configuration; empty for an IP entry.
	// Machine is the key of its virtual machine once resolved, see MachineKey.
	Interface, Machine string
}

// Admin states. Down accepts no new flows, regardless of the probes. None, Azure's default, leaves
// the decision to the probes.
const (
	Down = "Down"
	None = "None"
)
