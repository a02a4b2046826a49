// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"strings"
)

// TypeVirtualMachine is that of a virtual machine which is no member of a scale set's
// uniform instances.
const TypeVirtualMachine = "Microsoft.Compute/virtualMachines"

const typeScaleSet = "Microsoft.Compute/virtualMachineScaleSets"

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
		set, err := ParseResourceID(strings.Join(parts[:9], "/"), typeScaleSet)
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
