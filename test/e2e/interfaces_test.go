// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/armemu"
)

// In a pool of network interfaces, which join by themselves, a node that drains is Down: the
// interfaces tell whose they are.
func TestADrainingNodeIsDownInAPoolOfInterfaces(t *testing.T) {
	l := newLab(t, armemu.Options{})
	l.pool("web")
	l.machine("m1", "10.0.0.1", "", "as")
	const nic = network + "/networkInterfaces/m1-nic"
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.must(l.emulator.Put(nic, []byte(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
		"subnet":{"id":"`+vnet+`/subnets/nodes"},"loadBalancerBackendAddressPools":[{"id":"`+l.loadBalancer()+`/backendAddressPools/web"}]}}]}}`)))
	l.must(l.emulator.Put(compute+"/virtualMachines/m1", []byte(`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nic+`"}]}}}`)))
	l.service("web", l.namespace+"-m1")
	l.kubectl("taint", "node", l.namespace+"-m1", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	l.controller("--leader-elect=false")
	l.eventually("the admin state", func() error {
		body, _ := l.emulator.Get(l.loadBalancer() + "/backendAddressPools/web")
		if !strings.Contains(string(body), `"adminState":"Down"`) {
			return errors.New(string(body))
		}
		return nil
	})
}
