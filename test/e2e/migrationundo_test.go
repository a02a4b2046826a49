// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// createFlexible creates a flexible scale set with a model that references the pool of a load balancer,
// and a machine.
func (l *lab) createFlexible() (nic, set string) {
	l.t.Helper()
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16","networkSecurityGroup":{"id":"`+securityGroup+`"}}}`)))
	pools := `"loadBalancerBackendAddressPools":[{"id":"` + l.loadBalancer() + `/backendAddressPools/` + l.namespace + `"}]`
	address := `[{"name":"ip","properties":{"primary":true,"subnet":{"id":"` + vnet + `/subnets/nodes"},` + pools + `}}]`
	nic, set = network+"/networkInterfaces/f1", compute+"/virtualMachineScaleSets/flexible"
	l.must(l.emulator.Put(set, []byte(`{"location":"eastus","properties":{"orchestrationMode":"Flexible","virtualMachineProfile":{"networkProfile":{"networkApiVersion":"2020-11-01",
		"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"ipConfigurations":`+address+`}}]}}}}`)))
	l.must(l.emulator.Put(nic, []byte(`{"location":"eastus","properties":{"ipConfigurations":`+address+`}}`)))
	vm := compute + "/virtualMachines/f1"
	l.must(l.emulator.Put(vm, []byte(`{"location":"eastus","properties":{"virtualMachineScaleSet":{"id":"`+set+`"},"networkProfile":{"networkInterfaces":[{"id":"`+nic+`"}]}}}`)))
	l.runsOn("f1", vm)
	return nic, set
}

// expectReference waits until a resource references the load balancer's pool, or no longer does.
func (l *lab) expectReference(id string, want bool) {
	l.t.Helper()
	l.eventually("pool of "+id, func() error {
		if raw, _ := l.emulator.Get(id); strings.Contains(string(raw), l.loadBalancer()+"/backendAddressPools/") != want {
			return errors.New(string(raw))
		}
		return nil
	})
}

// The migration is undone while machines of a flexible scale set leave: they return to the Basic
// load balancer, and it starts again on request. Once the load balancer is about to be deleted an
// undo is impossible, and the address is kept all the same.
func TestAMigrationThatIsTakenBack(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.MigrationRoles()})
	publicIP := l.createBasic()
	l.startOnRequest()
	l.expectMigrate(1, "nothing is to be taken back: none is under way. Without --undo, weir migrate stop keeps", "stop", "--undo")

	before, _ := l.emulator.Get(l.loadBalancer())
	l.must(l.emulator.Put(l.loadBalancer(), []byte(strings.Replace(string(before), `"loadBalancingRules":[]`, `"loadBalancingRules":[{"name":"ssh","properties":{}}]`, 1))))
	l.expectMigrate(3, "stops it (ForeignRule): rule ssh", "status")
	l.expectMigrate(3, "stops it (ForeignRule): rule ssh", "run")
	l.must(l.emulator.Put(l.loadBalancer(), before))
	nic, set := l.createFlexible()
	l.expectMigrate(1, `-o "xml": want text or json`, "status", "-o", "xml")
	l.expectMigrate(1, "no-such.json", "status", "--config", "no-such.json")

	l.must(l.emulator.SetFaults(refused("virtualMachineScaleSets/*", "patch")))
	l.waitStandby(l.controller("--cluster-name", l.namespace)) // the process that gets the request exits
	l.expectMigrate(2, "Not begun: ", "run")
	l.expectReference(nic, false)
	l.expectMigrate(2, "\nUntil Delete starts, weir migrate stop --undo reverts all of it; public IPs remain Static.\n", "status")
	l.expectMigrate(0, "Undo requested by ", "stop", "--undo", "--why", "the shop is open")
	l.must(l.emulator.SetFaults(""))
	l.expectMigrate(4, "Undone by ", "status", "--watch")
	l.expectReference(nic, true)
	l.expectReference(set, true)
	l.expectMigrate(4, ": the shop is open\n", "status")
	l.expectMigrate(1, "nothing is to be taken back", "stop", "--undo")

	l.must(l.emulator.SetFaults(refused("loadBalancers/*", "delete")))
	l.waitStandby(l.controller("--cluster-name", l.namespace))
	l.expectMigrate(2, "Undone by ", "run")
	l.expectReference(nic, false)
	l.expectReference(set, false)
	l.eventually("no way back", func() error {
		return l.tryMigrate(2, "\nIt cannot be taken back: Basic load balancers are deleted, or about to be", "status")
	})
	l.expectMigrate(1, "the migration cannot be undone: Basic load balancers are deleted, or about to be", "stop", "--undo")
	l.must(l.emulator.SetFaults(""))
	l.expectMigrate(0, "Done: 1 address is where it was.", "run", "--wait", "--timeout", "10m")
	if raw, _ := l.emulator.Get(publicIP); !strings.Contains(string(raw), migratedAddress) {
		t.Errorf("%s", raw)
	}
	l.expectMigrate(1, "it has come to its end", "stop", "--undo")
}

func refused(path, kind string) string {
	return fmt.Sprintf("rules: [{match: {path: %q, kind: %s}, action: {status: 409, code: Conflict, message: busy}}]", path, kind)
}
