// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"fmt"
	"regexp"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Machine is a virtual machine that may be a node.
type Machine struct {
	// VM is zero for a uniform instance.
	VM lb.ResourceID
	// PlanScaleSet and Instance identify a uniform instance.
	ScaleSet lb.ResourceID
	Instance string
}

var instanceRule = regexp.MustCompile(`^[0-9]{1,10}$`)

// ParseMachine parses a node's spec.providerID. A flexible instance is a virtual machine.
func ParseMachine(providerID string) (Machine, error) {
	name, vm, err := lb.VMSetOfProviderID(providerID)
	if err != nil {
		return Machine{}, err
	}
	if name == "" {
		return Machine{VM: vm}, nil
	}
	parts := strings.Split(providerID[len("azure://"):], "/")
	set, err := lb.ParseResourceID(strings.Join(parts[:9], "/"), lb.TypeScaleSet)
	if err != nil {
		return Machine{}, fmt.Errorf("providerID %q: %w", providerID, err)
	}
	if !instanceRule.MatchString(parts[10]) {
		return Machine{}, fmt.Errorf("providerID %q: %q is no instance of a scale set: want a number", providerID, parts[10])
	}
	return Machine{ScaleSet: set, Instance: parts[10]}, nil
}

// IsUniform reports whether it is an instance of a uniform scale set.
func (m Machine) IsUniform() bool { return m.Instance != "" }

// Key is lb.MachineKey of the providerID.
func (m Machine) Key() string {
	if m.IsUniform() {
		return m.ScaleSet.Key() + "/virtualmachines/" + m.Instance
	}
	return m.VM.Key()
}

// String is used in messages.
func (m Machine) String() string {
	if m.IsUniform() {
		return Resource{ID: m.ScaleSet, Instance: m.Instance}.String()
	}
	return "virtual machine " + m.VM.Name
}
