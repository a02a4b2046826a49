// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// NetworkInterface is a standalone network interface, observed or desired. Those of uniform
// instances are parts of the Instance.
type NetworkInterface struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Machine is the key of its virtual machine, see MachineKey; empty if unattached.
	Machine string
	InterfaceConfiguration
	Origin any
}

// InterfaceConfiguration is a network interface, or a template of one.
type InterfaceConfiguration struct {
	Name string
	// Primary marks the interface with the default route. Azure shows it only if there are several.
	Primary          bool
	IPConfigurations []IPConfiguration
	// SecurityGroup is an ARM ID; may be empty.
	SecurityGroup string
}

// IPConfiguration is an address of a network interface and its backend pools.
type IPConfiguration struct {
	Name    string
	Family  Family
	Primary bool
	// IP is zero if Azure shows none, as for scale set models and instances.
	IP     netip.Addr
	Subnet string
	// Pools are ARM IDs, in Azure's order and spelling.
	Pools []string
}

// ScaleSet is a virtual machine scale set, observed or desired, with its model's interfaces.
type ScaleSet struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Uniform means that instances are parts of the scale set, not virtual machines with standalone
	// network interfaces.
	Uniform     bool
	UpgradeMode UpgradeMode
	Interfaces  []InterfaceConfiguration
	Origin      any
}

// UpgradeMode is how instances get a changed model.
type UpgradeMode string

// With Manual, each instance must be upgraded by a request.
const (
	UpgradeManual    UpgradeMode = "Manual"
	UpgradeAutomatic UpgradeMode = "Automatic"
	UpgradeRolling   UpgradeMode = "Rolling"
)

// Instance is an instance of a uniform scale set, observed or desired.
type Instance struct {
	ScaleSet ResourceID
	// ID is a decimal number.
	ID   string
	Etag string
	// Provisioning has more values, e.g. Creating or Deallocating.
	Provisioning Provisioning
	// LatestModel may be false for reasons unrelated to the network, and is false after a direct
	// write.
	LatestModel bool
	// Protected excludes the instance from upgrades and other actions on the scale set.
	Protected  bool
	Interfaces []InterfaceConfiguration
	Origin     any
}

// Deleting is the state of a resource that Azure is deleting.
const Deleting Provisioning = "Deleting"
