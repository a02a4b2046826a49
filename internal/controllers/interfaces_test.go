// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/nodes"
)

func (env *testEnv) createMachine(n int, pool string) {
	env.Helper()
	env.createNode(n)
	vm, nic := strings.Replace(network, ".Network", ".Compute", 1)+"/virtualMachines/"+env.node(n), network+"/networkInterfaces/"+env.node(n)
	env.put(nic, fmt.Sprintf(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{
		"subnet":{"id":"%s/subnets/nodes"},"loadBalancerBackendAddressPools":[{"id":"%s/backendAddressPools/%s"}]}}]}}`, vnetID, env.lbID(), pool))
	env.put(vm, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nic+`"}]}}}`)
	node := get[corev1.Node](env, "", env.node(n))
	node.Spec.ProviderID = "azure://" + strings.ToUpper(vm[:1]) + vm[1:]
	if err := api.Update(env.Context(), node); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) waitForDown(pool string, want ...string) {
	env.Helper()
	env.waitUntil(func() string {
		raw, _ := cloud.Get(env.lbID() + "/backendAddressPools/" + pool)
		var body struct {
			Properties struct {
				LoadBalancerBackendAddresses []struct {
					Name       string
					Properties struct{ AdminState string }
				}
			}
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			env.Fatal(err)
		}
		var down []string
		for _, a := range body.Properties.LoadBalancerBackendAddresses {
			if a.Properties.AdminState == "Down" {
				node, _, _ := strings.Cut(a.Name, ".weir-") // the mark of the cluster
				down = append(down, node)
			}
		}
		if fmt.Sprint(down) != fmt.Sprint(want) {
			return fmt.Sprintf("Down are %v, want %v", down, want)
		}
		return ""
	})
}

// In a network interface pool left by another controller, leaving nodes are Down until they return,
// or the Service or the BackendPool is deleted.
func TestNodesLeaveAPoolOfInterfaces(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "nics")
	s.createMachine(1, "nics")
	s.createMachine(2, "nics")
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("web", "web", s.endpointOn(1), s.endpointOn(2))
	s.createBackendPool("nics", "web")
	s.waitForReason("nics", v1alpha1.ReasonNICPool, "holds network interfaces, which Weir does not write")

	s.setTaints(1, outTaint)
	s.waitForDown("nics", "rg_"+s.node(1)+"ip")
	s.waitForNodeEvent(1, nodes.EventAdminDown, 1)
	s.waitForEvent("Service", "web", nodes.EventAdminDown, 1)
	s.waitForReason("nics", v1alpha1.ReasonNICPool, "Nodes that leave are Down in it all the same")
	if down := s.status("nics").Down; len(down) != 1 || down[0].Address != s.ip(1) || down[0].Node != s.node(1) || down[0].Reason != "out-of-service" {
		t.Errorf("on record: %+v", down)
	}
	s.setTaints(1)
	s.waitForDown("nics")
	s.waitForNodeEvent(1, nodes.EventAdminRestored, 1)
	if got := s.countEvents("Service", "web"); got[backendpool.EventUpdated]+got[backendpool.EventFailed]+got[backendpool.EventRetrying] != 0 {
		t.Errorf("told of its members, which are not Weir's: %v", got)
	}

	if id := s.status("nics").PoolID; id != "" {
		t.Errorf("%s was taken", id)
	}

	s.setTaints(2, outTaint)
	s.waitForDown("nics", "rg_"+s.node(2)+"ip")
	s.delete(&corev1.Service{}, "web")
	s.waitForDown("nics")
	s.waitForReason("nics", v1alpha1.ReasonServiceNotFound, "")
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.waitForDown("nics", "rg_"+s.node(2)+"ip")

	s.delete(&v1alpha1.BackendPool{}, "nics")
	s.waitForDeletion("nics")
	s.waitForDown("nics")
}
