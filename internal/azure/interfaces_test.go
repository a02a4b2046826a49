// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

const (
	rgNetwork = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/"
	rgCompute = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/"
)

// withInterfaces adds two machines, an instance and an unattached interface to a pool.
func withInterfaces(t *testing.T, emu *armemu.Emulator, pool lb.PoolID) {
	t.Helper()
	put := func(id, body string) {
		t.Helper()
		if err := emu.Put(id, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	put(vnetID, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`)
	put(pool.String(), `{"name":"web","properties":{"backendIPConfigurations":[{"id":"`+rgCompute+`virtualMachineScaleSets/blue/virtualMachines/3/networkInterfaces/nic/ipConfigurations/ip"}]}}`)
	for _, name := range []string{"n1", "n2", "spare"} {
		put(rgNetwork+"networkInterfaces/"+name+"-nic", fmt.Sprintf(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
			"subnet":{"id":"%s/subnets/nodes"},"loadBalancerBackendAddressPools":[{"id":"%s"}]}}]}}`, vnetID, pool))
		if name != "spare" {
			put(rgCompute+"virtualMachines/"+name, fmt.Sprintf(`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"%snetworkInterfaces/%s-nic"}]}}}`, rgNetwork, name))
		}
	}
}

// One list resolves the machines of a pool, and a write changes only admin states.
func TestAdminStatesOfInterfaces(t *testing.T) {
	emu, client, id := newEmulator(t, armemu.Options{})
	withInterfaces(t, emu, id)
	read, err := client.GetPool(t.Context(), id)
	if err != nil || !read.NIC || len(read.Addresses) != 4 {
		t.Fatalf("%+v, %v", read, err)
	}
	before := len(emu.Calls())
	pool, err := client.ResolveMachines(t.Context(), read)
	if err != nil || len(emu.Calls()) != before+1 {
		t.Fatalf("%d calls, %v", len(emu.Calls())-before, err)
	}
	if second, err := client.ResolveMachines(t.Context(), read); err != nil || len(emu.Calls()) != before+1 || second.Addresses[1].Machine != pool.Addresses[1].Machine {
		t.Errorf("a pool that is read again costs %d more lists, %v", len(emu.Calls())-before-1, err)
	}
	machines := map[string]int{}
	for i, a := range pool.Addresses {
		machines[a.Machine] = i
	}
	for _, want := range []string{rgCompute + "virtualMachines/n1", rgCompute + "virtualMachines/n2", rgCompute + "virtualMachineScaleSets/blue/virtualMachines/3", ""} {
		if _, ok := machines[lb.MachineKey("azure://"+want)]; !ok {
			t.Errorf("no interface of %q: %v", want, machines)
		}
	}
	at := machines[lb.MachineKey(rgCompute+"virtualMachines/n2")]
	pool.Addresses[at].AdminState, pool.Addresses[at].IP = lb.Down, netip.MustParseAddr("10.0.0.9") // ignored by the write
	shown, err := client.PutPool(t.Context(), pool)
	if err != nil || len(shown.Addresses) != 4 {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, a := range shown.Addresses {
		if down := strings.Contains(a.Interface, "/n2-nic/"); down != (a.AdminState == lb.Down) || a.IP.IsValid() {
			t.Errorf("%+v", a)
		}
	}
}

// A pool write that changes the interfaces is rejected before it is sent.
func TestInterfacesAreNotMembersToWrite(t *testing.T) {
	emu, client, id := newEmulator(t, armemu.Options{})
	withInterfaces(t, emu, id)
	read, err := client.GetPool(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	before := len(emu.Calls())
	for name, addresses := range map[string][]lb.Address{
		"one leaves": read.Addresses[1:],
		"one twice":  append(read.Addresses[1:len(read.Addresses):len(read.Addresses)], read.Addresses[1]),
		"an address": append(read.Addresses[1:len(read.Addresses):len(read.Addresses)], lb.Address{Name: "n9", IP: netip.MustParseAddr("10.0.0.9")}),
		"none":       nil,
	} {
		pool := read
		pool.Addresses = addresses
		if _, err := client.PutPool(t.Context(), pool); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Terminal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(emu.Calls()) - before; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// A missing resource group has no interfaces; other errors are returned.
func TestUnreadableMachines(t *testing.T) {
	for status, ok := range map[int]bool{http.StatusNotFound: false, http.StatusForbidden: true} {
		emu, client, id := newEmulator(t, armemu.Options{})
		withInterfaces(t, emu, id)
		read, err := client.GetPool(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("rules:\n- match: {kind: list}\n  action: {status: %d, code: %s}\n", status, map[int]string{404: "ResourceGroupNotFound", 403: "AuthorizationFailed"}[status])
		if err := emu.SetFaults(script); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ResolveMachines(t.Context(), read); (err != nil) != ok {
			t.Errorf("%d: %v", status, err)
		}
	}
}
