// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/test/shipped"
)

// Clusters with one load balancer. The last two have no loadBalancerBackendPoolConfigurationType.
const (
	oneOfAddresses  snapshotFolder = "../../internal/app/testdata/adoption-single-nodeip/"
	oneOfInterfaces snapshotFolder = "../../internal/app/testdata/adoption-single-default/"
	oneOfMixed      snapshotFolder = "../../internal/app/testdata/adoption-mixed/"
)

// On one load balancer all Services share the pool of all nodes: the takeover and a rollout of a Local Service write
// nothing, and a node that joins later gets into the pools of all nodes. When Weir leaves, Azure is as it was.
func TestATakeoverOfOneLoadBalancerWithAddresses(t *testing.T) {
	takeOverOne(t, oneOfAddresses, false)
}

// The same with the defaults of cloud-provider-azure: network interfaces.
func TestATakeoverOfOneLoadBalancerWithDefaults(t *testing.T) {
	takeOverOne(t, oneOfInterfaces, true)
}

// The same with virtual machines and instances of a scale set.
func TestATakeoverOfMixedMachines(t *testing.T) {
	takeOverOne(t, oneOfMixed, true)
}

func takeOverOne(t *testing.T, remaining snapshotFolder, interfaces bool) {
	role := shipped.AzureRole()
	if interfaces {
		role = shipped.AzureRoles()
	}
	w := &world{T: t, cloud: newCloud(t, remaining, role), left: remaining}
	w.putMachine()
	weir, original := w.takeOver("No changes (20 Services).")
	w.rollOut()
	w.joinNode(original, interfaces)
	w.removeWeir(weir, nil)
	if now := w.resourceParts(t); !maps.Equal(original, now) {
		t.Errorf("left behind: %v", diffParts(original, now))
	}
}

// rollOut moves the pods of a Local Service to other nodes, twice, and checks that nothing is written.
func (w *world) rollOut() {
	w.Helper()
	for _, node := range []string{"node-000000", "node-000001"} {
		var slice discoveryv1.EndpointSlice
		w.must(cluster.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "local-1"}, &slice))
		if before := *slice.Endpoints[0].NodeName; before == node {
			w.Fatalf("the pod is on %s already", before)
		}
		slice.Endpoints[0].NodeName = &node
		w.must(cluster.Update(w.Context(), &slice))
		time.Sleep(3 * time.Second) // beyond the quiet period of a change, and half an interval
	}
	time.Sleep(3 * time.Second) // beyond the interval
	w.checkNoWrites("a rollout")
}

const (
	joined  = "node-000009"
	machine = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/" + joined
)

// putMachine creates a virtual machine that is no node yet.
func (w *world) putMachine() {
	w.Helper()
	subnet := network + "virtualNetworks/vnet/subnets/subnet"
	w.must(w.Put(network+"networkInterfaces/"+joined+"-nic", fmt.Appendf(nil, `{"location":"eastus","properties":{"ipConfigurations":[
		{"name":"ipconfig1","properties":{"primary":true,"privateIPAddress":"10.1.0.19","privateIPAllocationMethod":"Static","privateIPAddressVersion":"IPv4","subnet":{"id":%[1]q},"loadBalancerBackendAddressPools":[]}},
		{"name":"ipconfig2","properties":{"privateIPAddress":"fd00:1::19","privateIPAllocationMethod":"Static","privateIPAddressVersion":"IPv6","subnet":{"id":%[1]q},"loadBalancerBackendAddressPools":[]}}]}}`, subnet)))
	w.must(w.Put(machine, fmt.Appendf(nil, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":%q}]}}}`, network+"networkInterfaces/"+joined+"-nic")))
}

// joinNode adds a node and removes it again: it joins every pool of all nodes, and nothing else changes.
func (w *world) joinNode(original map[string]string, interfaces bool) {
	w.Helper()
	w.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: joined}, Spec: corev1.NodeSpec{ProviderID: "azure://" + machine},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.19"}, {Type: corev1.NodeInternalIP, Address: "fd00:1::19"}}},
	})
	want := []string{
		"~ loadBalancers/kubernetes backendAddressPools/kubernetes", "~ loadBalancers/kubernetes backendAddressPools/kubernetes-IPv6",
		"~ loadBalancers/kubernetes-internal backendAddressPools/kubernetes",
	}
	if interfaces {
		want = append(want, "~ networkInterfaces/"+joined+"-nic")
	}
	w.waitGroupChanged(original, "a node joins", want)
	w.checkDropped("a node joins", 0)
	w.kubectl("delete", "node", joined)
	w.waitGroupChanged(original, "the node leaves", nil)
	_, _ = w.takeDropped() // connections to the node that has left
}

// waitGroupChanged waits until exactly these parts differ, apart from the security rules that name nodes.
func (w *world) waitGroupChanged(before map[string]string, when string, want []string) {
	w.Helper()
	w.eventually(when, func() error {
		var got []string
		now := w.resourceParts(w.T)
		for _, part := range diffParts(before, now) {
			if !strings.Contains(part, "networkSecurityGroups/nsg securityRules/") || len(want) == 0 {
				got = append(got, part)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			text := ""
			for _, part := range got {
				text += fmt.Sprintf("\n%s\n  was %s\n  is %s", part, before[part[2:]], now[part[2:]])
			}
			return fmt.Errorf("changed%s\nwant %v", text, want)
		}
		return nil
	})
}
