// SPDX-License-Identifier: Apache-2.0

package nic

// Target is the desired state of a pool of network interfaces that is recorded as managed.
type Target struct {
	Pool
	ToRemove []Machine
	// Missing are missing members.
	Missing []Machine
}

// State is the progress of a pool's machines.
type State struct {
	// Working are in progress or queued.
	Working []Machine
	// Waiting are blocked; each is checked again separately.
	Waiting []WaitingMachine
	// Unavailable cannot join, because they or their network interface do not exist. Each is checked
	// again separately.
	Unavailable []WaitingMachine
	// ScaleSetsUnknown is set until the scale sets are known: one may refer to a pool that must become
	// empty.
	ScaleSetsUnknown bool
	// Failed are reported once and retried when the pool's target is set again.
	Failed []Failure
}

// WaitingMachine is a blocked machine.
type WaitingMachine struct {
	Machine Machine
	Reason  string
}

// Failure is a failed attempt for one machine. Err carries a *armerror.Fault.
type Failure struct {
	Machine Machine
	Err     error
}
