// SPDX-License-Identifier: Apache-2.0

package nic

// Target is what a pool of network interfaces has to become. It is on record that the pool is ours.
type Target struct {
	Pool
	// Leaves are the machines that Azure shows in it and that have to leave.
	Leaves []Machine
	// Lacks are the members that Azure does not show in it.
	Lacks []Machine
}

// State is what is known of the machines of a pool that was handed over.
type State struct {
	// Working are the machines that are under way, or wait for their turn.
	Working []Machine
	// Waits are machines that nothing is done for yet: each is looked at again by itself.
	Waits []MachineWait
	// Unusable are machines that cannot join, and that nothing is done for: they are not there, or have no
	// network interface. Each is looked at again by itself, and joins once it can.
	Unusable []MachineWait
	// Looking is true while it is not known which scale sets there are: one may name a pool that is to be
	// empty.
	Looking bool
	// Failed are the machines whose try failed. They are said once, and tried again when the pool is
	// handed over the next time.
	Failed []Failure
}

// MachineWait is a machine that is waited for. Why is for people.
type MachineWait struct {
	Machine Machine
	Why     string
}

// Failure is what became of the try of one machine. Err carries a *fault.Fault.
type Failure struct {
	Machine Machine
	Err     error
}
