// SPDX-License-Identifier: Apache-2.0

// Package lb has the types of Azure load balancers and their network resources, as plain values, and decides from a
// node's taints, conditions and events whether it must take no new flows (taint.go, eviction.go, preemption.go).
package lb

import "net/netip"

// Family is the IP family of a backend pool.
type Family string

// IP families in the spelling of Kubernetes.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// Contains reports whether addr belongs to the family.
func (f Family) Contains(addr netip.Addr) bool {
	if f == IPv6 {
		return addr.Is6() && !addr.Is4In6()
	}
	return f == IPv4 && addr.Is4()
}

// NoEtag replaces a missing etag, which Azure never sends, but another server may. In If-Match it
// matches any version.
const NoEtag = "*"

// Pool is a backend pool, observed or desired. Etag is empty before a read.
type Pool struct {
	ID   PoolID
	Etag string
	// VirtualNetwork is an ARM ID; empty if the addresses have their own, or for an empty pool.
	VirtualNetwork string
	Addresses      []Address
	Provisioning   Provisioning
	// NIC is set for a pool of network interfaces, which Azure does not mix with IP addresses.
	NIC bool
	// Outbound is set for a pool of an outbound rule.
	Outbound bool
	// DrainSeconds is nil if Azure shows none, or if the desired pool keeps the observed one; 0 removes it.
	DrainSeconds *int32
	// Origin is the document that was read, from which a write retains unmodeled properties.
	Origin any
}

// DrainPeriod returns the seconds until Azure resets the flows of a removed member; 0 for none.
func (p Pool) DrainPeriod() int32 {
	if p.DrainSeconds == nil {
		return 0
	}
	return *p.DrainSeconds
}

// Provisioning is the state of the last write.
type Provisioning string

// While Updating, the shown content may be rolled back; when Failed, it may not be in effect.
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
	// VirtualNetwork is an ARM ID; empty if the pool has one.
	VirtualNetwork string
	// AdminState is "", "None", "Up" or "Down" when observed; Down or "" (probes decide) when
	// desired.
	AdminState string
	// Interface is the ARM ID of an IP configuration; empty for an IP entry. Machine is its virtual
	// machine once resolved, see MachineKey.
	Interface, Machine string
}

// Down accepts no new flows, regardless of the probes. None is Azure's default.
const (
	Down = "Down"
	None = "None"
)
