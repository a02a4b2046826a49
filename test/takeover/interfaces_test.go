// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/test/shipped"
)

// The same with pools of network interfaces: they contain the machines under the ids that Weir
// would use, so no load balancer, interface, scale set or instance is written. Then a Service costs
// no machine write, and a node that leaves costs one.
func TestATakeoverOfPoolsOfNetworkInterfaces(t *testing.T) {
	w := &world{T: t, cloud: newCloud(t, ofInterfaces, shipped.AzureRoles()), left: ofInterfaces}
	weir, original := w.takeOver("No changes (3 Services).")
	w.changeWithoutMachines()
	w.excludeAndInclude()
	w.removeWeir(weir, nil)
	if now := w.resourceParts(t); !maps.Equal(original, now) {
		t.Errorf("left behind: %v", diffParts(original, now))
	}
	w.checkInheritedMachines()
}

// changeWithoutMachines changes a Service and checks that no machine is written.
func (w *world) changeWithoutMachines() {
	w.Helper()
	before, since := w.resourceParts(w.T), len(w.Calls())
	w.kubectl("annotate", "service", "cluster", timeouts+"=9")
	w.waitChanged(before, "an annotation", "~ loadBalancers/kubernetes loadBalancingRules/"+clusterOwner+"-TCP-80")
	w.checkDropped("an annotation", 0)
	w.kubectl("annotate", "service", "cluster", timeouts+"-")
	w.waitChanged(before, "the annotation goes")
	w.checkDropped("the annotation goes", 0)
	if wrote := w.writesOfMachines(since); len(wrote) > 0 {
		w.Errorf("a Service's annotation wrote %v", wrote)
	}
}

// excludeAndInclude excludes a node without endpoints, so that only its instance is written, and
// includes it again.
func (w *world) excludeAndInclude() {
	w.Helper()
	const instance = "virtualMachineScaleSets/vmss/virtualMachines/1"
	before, since := w.resourceParts(w.T), len(w.Calls())
	ready := func(isReady bool) {
		w.kubectl("patch", "endpointslice", "local-1", "--type=json", fmt.Sprintf(`-p=[{"op": "add", "path": "/endpoints/1/conditions", "value": {"ready": %t}}]`, isReady))
	}
	ready(false)
	defer ready(true)
	w.kubectl("label", "node", "node-2", "node.kubernetes.io/exclude-from-external-load-balancers=true")
	w.waitChanged(before, "a node is excluded", "~ loadBalancers/kubernetes backendAddressPools/kubernetes",
		"~ loadBalancers/kubernetes-internal backendAddressPools/kubernetes", "~ virtualMachines/1")
	w.checkDropped("a node is excluded", 3, " to 10.1.0.5:80 ") // one for each rule
	w.kubectl("label", "node", "node-2", "node.kubernetes.io/exclude-from-external-load-balancers-")
	w.waitChanged(before, "the node is back")
	w.checkDropped("the node is back", 0)
	wrote := w.writesOfMachines(since)
	// It is written for both load balancers at once, unless a busy machine updates one of them later.
	if len(wrote) < 2 || len(wrote) > 4 || slices.ContainsFunc(wrote, func(call string) bool { return !strings.HasSuffix(call, instance) }) {
		w.Errorf("a node that left and came back wrote %v, want its instance twice", wrote)
	}
}

// writesOfMachines returns the writes of interfaces, scale sets and instances.
func (w *world) writesOfMachines(since int) []string {
	return slices.DeleteFunc(w.writesSince(since), func(call string) bool {
		return !strings.Contains(call, "/networkInterfaces/") && !strings.Contains(call, "/Microsoft.Compute/")
	})
}

// checkInheritedMachines starts Weir again with a Service that was deleted while no controller ran: its
// load balancer is deleted after all machines left it, and they keep their other pools.
func (w *world) checkInheritedMachines() {
	w.Helper()
	const owner, twin = "ad24ff3bd9a2a4fef88867e0bc6846f0", "loadBalancers/kubernetes-internal"
	before := w.resourceParts(w.T)
	w.kubectl("delete", "service", "internal", "--wait=false")
	w.start()
	w.kubectl("wait", "--for=delete", "service/internal", "--timeout=5m")
	w.waitChanged(before, "a Service that went in between",
		"- "+twin, "- "+twin+" backendAddressPools/kubernetes", "- "+twin+" frontendIPConfigurations/"+owner,
		"- "+twin+" loadBalancingRules/"+owner+"-TCP-80", "- "+twin+" probes/"+owner+"-TCP-33890",
		"~ networkInterfaces/node-0-nic", "~ virtualMachineScaleSets/vmss", "~ virtualMachines/0", "~ virtualMachines/1")
	w.checkDropped("a Service that went in between", 3, owner+"-TCP-80")
}
