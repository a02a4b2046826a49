// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

const interfacesRole = "../../config/azure-role-interfaces.json"

// The role for pools of network interfaces is sufficient and minimal, also for interfaces with a
// security group and a public IP, which a write repeats.
func TestTheRoleForInterfacesIsWhatMachinesAskFor(t *testing.T) {
	raw, err := os.ReadFile(interfacesRole)
	if err != nil {
		t.Fatal(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		emu, client, pool := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1, Role: role})
		withMachines(t, emu)
		joinPool(t, client, pool.String())
		requested := map[string]bool{}
		for _, call := range emu.Calls() {
			if call.Status >= 400 {
				t.Errorf("%s %s: %d %s, which asks for %v", call.Method, call.Path, call.Status, call.ErrorCode, call.Actions)
			}
			for _, action := range call.Actions {
				requested[action] = true
			}
		}
		if got, want := slices.Sorted(maps.Keys(requested)), slices.Sorted(slices.Values(role.Actions)); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nand asked for is\n%s", interfacesRole, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
	})
}

// withMachines adds a virtual machine and a scale set with one instance.
func withMachines(t *testing.T, emu *armemu.Emulator) {
	t.Helper()
	const profile = `"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"networkSecurityGroup":{"id":"` + rgNetwork + `networkSecurityGroups/nsg"},
		"ipConfigurations":[{"name":"ip","properties":{"primary":true,"subnet":{"id":"` + vnetID + `/subnets/nodes"}}}]}}]`
	for _, r := range []struct{ id, body string }{
		{vnetID, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`},
		{rgNetwork + "networkSecurityGroups/nsg", `{"location":"eastus"}`},
		{rgNetwork + "publicIPAddresses/n1", `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`},
		{rgNetwork + "networkInterfaces/n1-nic", `{"location":"eastus","properties":{"networkSecurityGroup":{"id":"` + rgNetwork + `networkSecurityGroups/nsg"},"ipConfigurations":[{"name":"ip","properties":{
			"primary":true,"subnet":{"id":"` + vnetID + `/subnets/nodes"},"publicIPAddress":{"id":"` + rgNetwork + `publicIPAddresses/n1"}}}]}}`},
		{rgCompute + "virtualMachines/n1", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"` + rgNetwork + `networkInterfaces/n1-nic"}]}}}`},
		{rgCompute + "virtualMachineScaleSets/blue", `{"location":"eastus","sku":{"name":"Standard_D2s_v5","capacity":1},"properties":{"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"networkProfile":{` + profile + `}}}}`},
		{rgCompute + "virtualMachineScaleSets/blue/virtualMachines/0", `{"location":"eastus","properties":{"networkProfileConfiguration":{` + profile + `}}}`},
	} {
		if err := emu.Put(r.id, []byte(r.body)); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", r.id, err))
		}
	}
}

// joinPool adds all of them to a pool.
func joinPool(t *testing.T, arm *azure.Client, pool string) {
	t.Helper()
	client, ctx := azure.NewMachineClient(arm), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	interfaces, err := client.ListInterfaces(ctx, "s1", "rg")
	if err != nil || len(interfaces) == 0 {
		t.Fatalf("%d interfaces, %v", len(interfaces), err)
	}
	own, err := client.GetInterface(ctx, interfaces[0].ID)
	must(err)
	own.IPConfigurations[0].Pools = []string{pool}
	_, err = client.PutInterface(ctx, own)
	must(err)
	blue := lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: "blue"}
	set, err := client.GetScaleSet(ctx, blue)
	must(err)
	set.Interfaces[0].IPConfigurations[0].Pools = []string{pool}
	_, err = client.PatchModel(ctx, set)
	must(err)
	instances, err := client.ListInstances(ctx, blue)
	if err != nil || len(instances) != 1 {
		t.Fatalf("%d instances, %v", len(instances), err)
	}
	must(client.UpgradeInstances(ctx, blue, []string{instances[0].ID}))
	instance, err := client.GetInstance(ctx, blue, instances[0].ID)
	must(err)
	_, err = client.PutInstance(ctx, instance)
	must(err)
}
