// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"strings"
)

// TypeVirtualMachine is the ARM type of virtual machines, except uniform instances.
const TypeVirtualMachine = "Microsoft.Compute/virtualMachines"

// TypeNetworkInterface is the ARM type of network interfaces, except those of uniform instances.
const TypeNetworkInterface = "Microsoft.Network/networkInterfaces"

// TypeScaleSet is the ARM type of virtual machine scale sets.
const TypeScaleSet = "Microsoft.Compute/virtualMachineScaleSets"

// VMSetOfProviderID parses a node's spec.providerID, azure:///subscriptions/…. It returns the name
// of the scale set, or else the virtual machine.
func VMSetOfProviderID(text string) (scaleSet string, machine ResourceID, err error) {
	const scheme = "azure://"
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return "", ResourceID{}, fmt.Errorf("providerID %q: want azure:///subscriptions/…", text)
	}
	id := text[len(scheme):]
	if parts := strings.Split(id, "/"); len(parts) == 11 && strings.EqualFold(parts[9], "virtualMachines") && parts[10] != "" {
		set, err := ParseResourceID(strings.Join(parts[:9], "/"), TypeScaleSet)
		if err != nil {
			return "", ResourceID{}, fmt.Errorf("providerID %q: %w", text, err)
		}
		return set.Name, ResourceID{}, nil
	}
	machine, err = ParseResourceID(id, TypeVirtualMachine)
	if err != nil {
		return "", ResourceID{}, fmt.Errorf("providerID %q: %w", text, err)
	}
	return "", machine, nil
}

// MachineKey is the lower-case key of a virtual machine or instance, from spec.providerID or an ARM
// ID.
func MachineKey(id string) string {
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(id)), "azure://")
}

// MachineOfInterface parses the ARM ID of an IP configuration into the key of a uniform instance,
// or else the network interface to read.
func MachineOfInterface(text string) (machine string, nic ResourceID, err error) {
	at := strings.Index(strings.ToLower(text), "/ipconfigurations/")
	if at < 0 {
		return "", ResourceID{}, fmt.Errorf("%q is no id of an IP configuration of a network interface", text)
	}
	instance := text[:at]
	if cut := strings.LastIndex(strings.ToLower(instance), "/networkinterfaces/"); cut > 0 {
		if set, _, err := VMSetOfProviderID("azure://" + instance[:cut]); err == nil && set != "" {
			return MachineKey(instance[:cut]), ResourceID{}, nil
		}
	}
	nic, err = ParseResourceID(instance, TypeNetworkInterface)
	return "", nic, err
}
