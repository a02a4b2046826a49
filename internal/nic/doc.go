// SPDX-License-Identifier: Apache-2.0

// Package nic decides how machines join backend pools of network interfaces. Such a pool is not
// written itself; each interface lists its pools. The package is pure: desired and observed values
// in, resources to write out.
//
//	machine.go    a node's spec.providerID → the machine
//	resource.go   the resource of one write, and its worker
//	managed.go    pools that a machine may be removed from
//	desired.go    pools and members → the pools of each machine and each scale set model
//	next.go       observed pools of an interface → desired pools
//	interface.go  machines with standalone network interfaces
//	scaleset.go   uniform scale sets: the model, then the instances
//	state.go    the target of a pool and the state of its machines
package nic
