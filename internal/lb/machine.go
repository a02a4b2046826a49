// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"strings"
)

// TypeVirtualMachine is that of a virtual machine which is no member of a scale set's
// uniform instances.
const TypeVirtualMachine = "Microsoft.Compute/virtualMachines"

// TypeNetworkInterface is that of a network interface which is no part of a scale set's
// uniform instances.
const TypeNetworkInterface = "Microsoft.Network/networkInterfaces"

// TypeScaleSet is that of a virtual machine scale set.
const TypeScaleSet = "Microsoft.Compute/virtualMachineScaleSets"

// VMSetOfProviderID reads a node's spec.providerID, azure:///subscriptions/…. It returns
// the name of the node's scale set; or, with an empty name, the virtual machine whose
// availability set Azure has to be asked for.
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

// MachineKey is equal for equal virtual machines, instances of scale sets included: it is made
// of a node's spec.providerID or of an ARM id, however that is spelled.
func MachineKey(id string) string {
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(id)), "azure://")
}

// MachineOfInterface reads the ARM id of an IP configuration of a network interface. That of a
// scale set's uniform instance says whose it is: machine is the key of the instance. Of any
// other one Azure has to be asked for the interface.
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
