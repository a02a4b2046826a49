// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

func TestVMSetOfProviderID(t *testing.T) {
	const group = "azure:///subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/"
	tests := []struct{ name, text, scaleSet, machine string }{
		{"a member of a scale set", group + "virtualMachineScaleSets/aks-blue-1-vmss/virtualMachines/3", "aks-blue-1-vmss", ""},
		{"a machine of its own", group + "virtualMachines/n1", "", "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/n1"},
		{"other capitals", "AZURE:///SUBSCRIPTIONS/s1/resourcegroups/RG/providers/microsoft.compute/virtualmachines/n1", "", "/subscriptions/s1/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/n1"},
		{"another cloud's", "aws:///eu-central-1a/i-0", "", ""},
		{"nothing", "", "", ""},
		{"no scheme", group[len("azure://"):] + "virtualMachines/n1", "", ""},
		{"another type", group + "disks/n1", "", ""},
		{"a part of a machine", group + "virtualMachines/n1/extensions/e", "", ""},
		{"a scale set without a member", group + "virtualMachineScaleSets/a", "", ""},
		{"a scale set with an empty member", group + "virtualMachineScaleSets/a/virtualMachines/", "", ""},
		{"a name that is none", group + "virtualMachines/a?b", "", ""},
		{"a way out", group + "virtualMachineScaleSets/../virtualMachines/0", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			scaleSet, machine, err := lb.VMSetOfProviderID(tt.text)
			if wantErr := tt.scaleSet+tt.machine == ""; (err != nil) != wantErr || scaleSet != tt.scaleSet {
				t.Errorf("got scale set %q, %v", scaleSet, err)
			}
			if tt.machine != "" && machine.String() != tt.machine || tt.machine == "" && machine != (lb.ResourceID{}) {
				t.Errorf("got machine %s", machine)
			}
		})
	}
}
