// SPDX-License-Identifier: Apache-2.0

package nic

// Target is the desired state of a pool of network interfaces that is recorded as managed.
type Target struct {
	Pool
	Leaves []Machine
	// Lacks are missing members.
	Lacks []Machine
}

// State is the progress of a pool's machines.
type State struct {
	// Working are in progress or queued.
	Working []Machine
	// Waits are blocked; each is checked again separately.
	Waits []MachineWait
	// Unusable cannot join, because they or their network interface do not exist. Each is checked
	// again separately.
	Unusable []MachineWait
	// Looking is set until the scale sets are known: one may refer to a pool that must become
	// empty.
	Looking bool
	// Failed are reported once and retried when the pool's target is set again.
	Failed []Failure
}

// MachineWait is a blocked machine.
type MachineWait struct {
	Machine Machine
	Why     string
}

// Failure is a failed attempt for one machine. Err carries a *fault.Fault.
type Failure struct {
	Machine Machine
	Err     error
}
