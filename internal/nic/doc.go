// SPDX-License-Identifier: Apache-2.0

// Package nic decides how machines become members of backend pools of network interfaces. Such a
// pool is not written itself: each interface says which pools it is in. It is pure: what is wanted
// and what Azure shows go in as values, and what has to be written comes out.
//
//	machine.go    a node's spec.providerID → the machine
//	resource.go   what one request writes, and whose lane that is
//	ours.go       which pools a machine may be taken out of
//	desired.go    pools and their members → the pools of each machine and of each scale set's model
//	next.go       the pools that an interface is in → those that it shall be in
//	interface.go  machines that have a network interface of their own
//	scaleset.go   uniform scale sets: the model, then the instances
//	brought.go    what a pool is to become, and what is known of its machines
package nic
