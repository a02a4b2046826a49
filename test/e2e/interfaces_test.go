// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// virtualMachine creates a virtual machine with a network interface, and its node.
func (l *lab) virtualMachine(name string) {
	l.t.Helper()
	nic := network + "/networkInterfaces/" + name
	l.must(l.emulator.Put(nic, []byte(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"primary":true,"subnet":{"id":"`+vnet+`/subnets/nodes"}}}]}}`)))
	vm := compute + "/virtualMachines/" + name
	l.must(l.emulator.Put(vm, []byte(`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nic+`"}]}}}`)))
	l.runsOn(name, vm)
}

// instance creates an instance of a uniform scale set, and its node.
func (l *lab) instance(set, number string) {
	l.t.Helper()
	set = compute + "/virtualMachineScaleSets/" + set
	const network = `"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"ipConfigurations":[{"name":"ip","properties":{"primary":true,"subnet":{"id":"` + vnet + `/subnets/nodes"}}}]}}]`
	if _, ok := l.emulator.Get(set); !ok {
		l.must(l.emulator.Put(set, []byte(`{"location":"eastus","properties":{"orchestrationMode":"Uniform","upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"networkProfile":{`+network+`}}}}`)))
	}
	id := set + "/virtualMachines/" + number
	l.must(l.emulator.Put(id, []byte(`{"location":"eastus","properties":{"networkProfileConfiguration":{`+network+`}}}`)))
	l.runsOn("of-"+number, id)
}

func (l *lab) runsOn(node, machine string) {
	l.t.Helper()
	l.machines++
	name := l.node(node, fmt.Sprintf("10.0.7.%d", l.machines))
	var n corev1.Node
	l.editObject(client.ObjectKey{Name: name}, &n, func() { n.Spec.ProviderID = "azure://" + machine })
}

// expectInterfaces waits until a pool contains the interfaces of exactly these machines.
func (l *lab) expectInterfaces(balancer, pool string, want ...string) {
	l.t.Helper()
	l.eventually("interfaces in pool "+pool+" of "+balancer, func() error {
		body, ok := l.emulator.Get(balancer + "/backendAddressPools/" + pool)
		if !ok {
			return fmt.Errorf("there is no such pool")
		}
		var p struct {
			Properties struct {
				Interfaces []struct {
					ID string `json:"id"`
				} `json:"backendIPConfigurations"`
			} `json:"properties"`
		}
		l.must(json.Unmarshal(body, &p))
		got := []string{}
		for _, i := range p.Properties.Interfaces {
			parts := strings.Split(i.ID, "/")
			if at := slices.Index(parts, "virtualMachines"); at > 0 {
				got = append(got, parts[at-1]+"/"+parts[at+1])
			} else {
				got = append(got, parts[8])
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("holds %v, want %v; %s", got, want, l.kubectl("get", "bp", "-A", "-o", "wide"))
		}
		return nil
	})
}

// With nodeIPConfiguration and both roles, the program adds virtual machines and scale set
// instances to the pool of all nodes, follows nodes, and removes everything with the last Service.
func TestAServiceOfNetworkInterfaces(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.AzureRoles()})
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"}`)
	l.virtualMachine("vm1")
	l.instance("blue", "0")
	l.createLoadBalancerService("web", nil)
	l.controller("--leader-elect-namespace", "weir-system", "--cluster-name", l.namespace)
	l.ingress("web", 1)
	l.expectInterfaces(l.loadBalancer(), l.namespace, "blue/0", "vm1")
	l.virtualMachine("vm2")
	l.expectInterfaces(l.loadBalancer(), l.namespace, "blue/0", "vm1", "vm2")
	var s corev1.Service
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &s))
	l.must(l.cluster.Delete(t.Context(), &s))
	l.gone("Service web", &s)
	if _, ok := l.emulator.Get(l.loadBalancer()); ok {
		t.Error("the load balancer is left")
	}
}
