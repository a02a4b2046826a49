// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// NetworkInterface is a network interface that is a resource of its own, as Azure shows it, or as
// it shall become. One of a scale set's uniform instance is a part of that instance.
type NetworkInterface struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Machine is the key of the virtual machine that has it, see MachineKey; empty if none has.
	Machine string
	InterfaceConfiguration
	// Origin is the adapter's own decoding of what it read, as that of a pool.
	Origin any
}

// InterfaceConfiguration is what a network interface, or the part of a scale set that makes one
// for each instance, says of pools.
type InterfaceConfiguration struct {
	Name string
	// Primary is true for that one of a machine's interfaces which has its default route. Azure
	// shows it on machines with several alone.
	Primary          bool
	IPConfigurations []IPConfiguration
	// SecurityGroup is the ARM id of the network security group of its own; empty if it has none.
	SecurityGroup string
}

// IPConfiguration is an address of a network interface, and the backend pools that it is in.
type IPConfiguration struct {
	Name    string
	Family  Family
	Primary bool
	// IP is its address; zero where Azure shows none, as of scale sets' models and instances.
	IP netip.Addr
	// Subnet is the ARM id of that which the address is of.
	Subnet string
	// Pools are ARM ids of backend pools of load balancers, in the order and with the capitals in
	// which Azure shows them.
	Pools []string
}

// ScaleSet is a virtual machine scale set as Azure shows it, or as it shall become: of its model
// only the network interfaces.
type ScaleSet struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	// Uniform is true if its instances are parts of it. Those of a flexible one are virtual
	// machines with network interfaces of their own.
	Uniform     bool
	UpgradeMode UpgradeMode
	Interfaces  []InterfaceConfiguration
	Origin      any
}

// UpgradeMode says who brings the instances of a scale set to a model that has changed.
type UpgradeMode string

// The modes, as Azure spells them. With Manual somebody has to ask for each instance; with the
// others Azure does it.
const (
	UpgradeManual    UpgradeMode = "Manual"
	UpgradeAutomatic UpgradeMode = "Automatic"
	UpgradeRolling   UpgradeMode = "Rolling"
)

// Instance is an instance of a uniform scale set as Azure shows it, or as it shall become.
type Instance struct {
	ScaleSet ResourceID
	// ID is a number in decimal.
	ID   string
	Etag string
	// Provisioning may be Creating, Deallocating and others besides the states that matter.
	Provisioning Provisioning
	// LatestModel is true if it is as the scale set's model says. It may be false for reasons that
	// have nothing to do with the network, and is false of one that was written by itself.
	LatestModel bool
	// Protected is true if actions on the scale set pass it over: Azure does not upgrade it.
	Protected  bool
	Interfaces []InterfaceConfiguration
	Origin     any
}

// Deleting is the state of what Azure is about to remove.
const Deleting Provisioning = "Deleting"
