// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// emptyAzure returns an emulator with the demo's seed resources.
func emptyAzure(t *testing.T) (*armemu.Emulator, *observer) {
	t.Helper()
	emu := patient.Watch(t, armemu.New(armemu.Options{LatencyScale: 0}))
	seed, err := json.Marshal(seedResources())
	if err != nil {
		t.Fatal(err)
	}
	if err := emu.Restore(seed); err != nil {
		t.Fatal(err)
	}
	admin := httptest.NewServer(emu.Admin())
	t.Cleanup(admin.Close)
	return emu, newObserver(newAzureObserver(admin.URL + "/_emu/"))
}

// azureWithWorkloads returns an emulator with the workloads' load balancer. The pool of db has a foreign
// address.
func azureWithWorkloads(t *testing.T) (*armemu.Emulator, *observer) {
	t.Helper()
	emu, o := emptyAzure(t)
	var fixtures []serviceFixture
	for _, w := range allWorkloads {
		fixtures = append(fixtures, serviceFixture{name: w.name})
	}
	fixtures[2].members = addresses{foreignAddress: "somebody-elses"}
	buildAzure(t, emu, fixtures...)
	o.addForeign("db", foreignAddress, "somebody-elses")
	return emu, o
}

// serviceFixture is a Service with a load balancer.
type serviceFixture struct {
	name    string
	members addresses
	idle    int // minutes; 0 is 4
}

// addressAt returns the public address of the i-th Service.
func addressAt(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 1, byte(i + 1)}) } //nolint:gosec // some few

// buildAzure creates a public IP, frontend, rule, probe and pool for each Service and deletes all
// others. Only the pools have Weir's names.
func buildAzure(t *testing.T, emu *armemu.Emulator, fixtures ...serviceFixture) {
	t.Helper()
	put := func(id string, body object) {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := emu.Put(id, raw); err != nil {
			t.Fatal(err)
		}
	}
	id := provider + "loadBalancers/" + loadBalancer
	var frontends, pools, probes, rules []object
	for i, b := range fixtures {
		publicIP := fmt.Sprintf("%spublicIPAddresses/IP-%d", provider, i)
		put(publicIP, object{"location": "eastus", "sku": object{"name": "Standard"},
			"properties": object{"publicIPAllocationMethod": "Static", "ipAddress": addressAt(i).String()}})
		front, pool, probe := fmt.Sprintf("Front-%d", i), namespace+"-"+b.name, fmt.Sprintf("Probe-%d", i)
		var entries []object
		for ip, name := range b.members {
			entries = append(entries, object{"name": name, "properties": object{"ipAddress": ip.String()}})
		}
		frontends = append(frontends, object{"name": front, "properties": object{"publicIPAddress": object{"id": publicIP}}})
		pools = append(pools, object{"name": pool, "properties": object{
			"virtualNetwork": object{"id": provider + "virtualNetworks/" + network}, "loadBalancerBackendAddresses": entries,
		}})
		probes = append(probes, object{"name": probe, "properties": object{"protocol": "Tcp", "port": 80}})
		rules = append(rules, object{"name": fmt.Sprintf("Rule-%d", i), "properties": object{
			"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "idleTimeoutInMinutes": max(b.idle, 4),
			"frontendIPConfiguration": object{"id": id + "/frontendIPConfigurations/" + front},
			"backendAddressPool":      object{"id": id + "/backendAddressPools/" + pool},
			"probe":                   object{"id": id + "/probes/" + probe},
		}})
	}
	put(id, object{"location": "eastus", "sku": object{"name": "Standard"}, "properties": object{
		"frontendIPConfigurations": frontends, "backendAddressPools": pools, "probes": probes, "loadBalancingRules": rules,
	}})
}
