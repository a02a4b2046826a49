// SPDX-License-Identifier: Apache-2.0

// Package nicupdate writes what makes machines members of pools of network interfaces. It has a lane
// for each resource that is written, and decides nothing: nic says what has to be written, and the
// lanes of the pools when it is tried again.
//
//	ports.go      what it asks of Azure and of the cluster, and what it says of a pool
//	updater.go    Updater, Run: works until the context is done, and says which pools have settled
//	bring.go      pools are handed over, and what is known of their machines is said
//	book.go       lanes and machines, and what becomes of them
//	plan.go       where all machines belong, computed once for each change
//	schedule.go   what is due is attempted, as much as may be at a time; what an attempt has found is kept
//	attempt.go    one attempt at a lane, and what its failure means
//	machine.go    a machine with an interface of its own: read, decide, write, look
//	scaleset.go   a round of a uniform scale set: the model, and what is remembered of it
//	instances.go  its instances, one after the other
//	meter.go      what is counted and measured
//	witness.go    which scale sets may name a pool that is to be empty
//	yield.go      machines wait for a load balancer whose writes they overtake
//
// The lock of the Updater is held for no call that may take time. A lane's machines are under its
// lock, too; what an attempt remembers of a scale set belongs to the attempt.
package nicupdate
