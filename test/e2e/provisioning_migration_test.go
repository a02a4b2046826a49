// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// setForeignRule adds or removes a load balancer rule without a Service.
func (l *lab) setForeignRule(publicIP string, ok bool) {
	l.t.Helper()
	owner := service.OwnerNameOf(string(l.serviceOf("web").UID))
	rules := ""
	if ok {
		rules = fmt.Sprintf(`{"name":"theirs","properties":{"protocol":"Tcp","frontendPort":9999,"backendPort":9999,
			"frontendIPConfiguration":{"id":"%[1]s/frontendIPConfigurations/%[2]s"},"backendAddressPool":{"id":"%[1]s/backendAddressPools/%[3]s"}}}`, l.loadBalancer(), owner, l.namespace)
	}
	l.must(l.emulator.Put(l.loadBalancer(), fmt.Appendf(nil, `{"location":"eastus","sku":{"name":"Basic"},"properties":{"backendAddressPools":[{"name":%q}],
		"frontendIPConfigurations":[{"name":%q,"properties":{"publicIPAddress":{"id":%q}}}],"loadBalancingRules":[%s]}}`, l.namespace, owner, publicIP, rules)))
}

// A Provision migrates the cluster, with permissions on one ConfigMap only. A user's stop has
// priority, and blockers are reported on the Provision; each is retried on request. At each request
// the leading controller steps down and the next one migrates. The attempt follows it from the
// provisioner, a separate process.
func TestProvisioningByAMigration(t *testing.T) {
	runParallel(t)
	p := newProvisioningOn(newLab(t, armemu.Options{Role: shipped.MigrationRoles()}))
	publicIP := p.createBasic()
	p.setForeignRule(publicIP, true)
	p.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus","loadBalancerSku":"standard","loadBalancerMigration":"manual"}`)
	p.applyFile(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: migrator}
---
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: standard}
spec:
  target: {serviceAccountName: migrator}
  steps: [{name: migrate, migration: {to: Standard}}]
  policy: {initialInterval: 1h, maxInterval: 1h}
`)
	p.mayFail("-n", "weir-system", "delete", "role,rolebinding", "migrator")
	t.Cleanup(func() { p.mayFail("-n", "weir-system", "delete", "role,rolebinding", "migrator") })
	p.does("-n", "weir-system", "create", "role", "migrator", "--verb", "get,update", "--resource", "configmaps", "--resource-name", "weir-controller")
	p.does("-n", "weir-system", "create", "rolebinding", "migrator", "--role", "migrator", "--serviceaccount", p.namespace+":migrator")
	p.does("-n", "weir-system", "create", "configmap", "weir-controller")
	p.expectMigrate(0, "Stop requested by ", "stop", "--why", "the shop is open")

	p.provisioner("--leader-elect=false")
	var programs []*program
	for range 3 {
		programs = append(programs, p.controller("--cluster-name", p.namespace))
	}
	failed := func(attempts int32, wantText string) {
		t.Helper()
		last := p.waitState("standard", v1alpha1.ProvisionFailed, attempts).LastAttempt
		if last.Result != "Invalid" || last.Step != "migrate" || !strings.Contains(last.Message, wantText) {
			t.Errorf("attempt %d has failed for %+v, want %q", attempts, last, wantText)
		}
	}
	expectEnded := func(want int) {
		t.Helper()
		p.eventually("controllers that have given up the lead", func() error {
			n := 0
			for _, c := range programs {
				select {
				case <-c.Done():
					n++
				default:
				}
			}
			if n != want {
				return fmt.Errorf("%d, want %d", n, want)
			}
			return nil
		})
	}
	failed(1, "it was stopped there, requested by ")
	expectEnded(0) // a user has stopped it
	p.expectMigrate(0, "Canceled the stop", "resume")
	p.weir("retry-now", "standard")
	failed(2, "something keeps it from starting: ForeignRule: ")
	expectEnded(1)
	p.setForeignRule(publicIP, false)
	p.weir("retry-now", "standard")
	p.waitState("standard", v1alpha1.ProvisionSucceeded, 3)
	expectEnded(2)
	if raw, _ := p.emulator.Get(publicIP); !strings.Contains(string(raw), `"Standard"`) || !strings.Contains(string(raw), migratedAddress) {
		t.Errorf("the public IP is %s", raw)
	}
	if logs := p.weir("logs", "standard"); !strings.Contains(logs, "migration: no load balancer of the cluster is Basic any more") {
		t.Errorf("the logs do not say how it ended:\n%s", logs)
	}
	p.eventually("the pool is filled", func() error {
		if got := p.addresses(p.loadBalancer(), p.namespace+"-web"); !slices.Equal(got, []string{"10.0.0.1"}) {
			return fmt.Errorf("it holds %v", got)
		}
		return nil
	})
}
