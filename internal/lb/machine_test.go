// SPDX-License-Identifier: Apache-2.0

package lb_test

import (
	"strings"
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

func TestMachineOfInterface(t *testing.T) {
	const group = "/subscriptions/s1/resourceGroups/RG/providers/"
	tests := []struct{ name, text, machine, nic string }{
		{"an instance's", group + "Microsoft.Compute/virtualMachineScaleSets/Blue/virtualMachines/3/networkInterfaces/n/ipConfigurations/ip", "/subscriptions/s1/resourcegroups/rg/providers/microsoft.compute/virtualmachinescalesets/blue/virtualmachines/3", ""},
		{"one of its own", group + "Microsoft.Network/networkInterfaces/n/ipConfigurations/ip", "", "/subscriptions/s1/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/n"},
		{"other capitals", strings.ToUpper(group + "Microsoft.Network/networkInterfaces/n/ipConfigurations/ip"), "", "/subscriptions/S1/resourceGroups/RG/providers/Microsoft.Network/networkInterfaces/N"},
		{"the interface itself", group + "Microsoft.Network/networkInterfaces/n", "", ""},
		{"something else's", group + "Microsoft.Network/loadBalancers/n/ipConfigurations/ip", "", ""},
		{"a way out", group + "Microsoft.Network/networkInterfaces/../ipConfigurations/ip", "", ""},
		{"nothing", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			machine, nic, err := lb.MachineOfInterface(tt.text)
			if (err != nil) != (tt.machine+tt.nic == "") || machine != tt.machine || tt.nic != "" && nic.String() != tt.nic {
				t.Errorf("got %q, %s, %v", machine, nic, err)
			}
		})
	}
	if lb.MachineKey("AZURE:///Subscriptions/S1") != "/subscriptions/s1" {
		t.Error("a key depends on how an id is spelled")
	}
}
