// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// NetworkInterface is a standalone network interface, observed or desired. Interfaces of uniform
// instances are parts of the Instance.
type NetworkInterface struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Machine is the key of the attached virtual machine, see MachineKey; empty if unattached.
	Machine string
	InterfaceConfiguration
	// Origin is the adapter's document, like that of a pool.
	Origin any
}

// InterfaceConfiguration is a network interface, or a scale set's template of one.
type InterfaceConfiguration struct {
	Name string
	// Primary marks the interface with the machine's default route. Azure shows it only on machines
	// with several interfaces.
	Primary          bool
	IPConfigurations []IPConfiguration
	// SecurityGroup is the ARM ID of the interface's network security group; may be empty.
	SecurityGroup string
}

// IPConfiguration is an address of a network interface and its backend pools.
type IPConfiguration struct {
	Name    string
	Family  Family
	Primary bool
	// IP is the address; zero if Azure shows none, as for scale set models and instances.
	IP netip.Addr
	// Subnet is the ARM ID of the subnet.
	Subnet string
	// Pools are ARM IDs of backend pools, in Azure's order and spelling.
	Pools []string
}

// ScaleSet is a virtual machine scale set, observed or desired, with the network interfaces of its
// model.
type ScaleSet struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Uniform means that instances are parts of the scale set. Those of a flexible scale set are
	// virtual machines with standalone network interfaces.
	Uniform     bool
	UpgradeMode UpgradeMode
	Interfaces  []InterfaceConfiguration
	Origin      any
}

// UpgradeMode is how instances get a changed model.
type UpgradeMode string

// Upgrade modes in Azure's spelling. With Manual, each instance must be upgraded by a request.
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
	// Provisioning may have other values, e.g. Creating or Deallocating.
	Provisioning Provisioning
	// LatestModel is set if the instance has the latest model. It may be false for reasons
	// unrelated to the network, and is false for an instance that was written directly.
	LatestModel bool
	// Protected excludes the instance from actions on the scale set, including upgrades.
	Protected  bool
	Interfaces []InterfaceConfiguration
	Origin     any
}

// Deleting is the state of a resource that Azure is deleting.
const Deleting Provisioning = "Deleting"
