// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

const (
	compute    = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute"
	placeLabel = "weir.dev/load-balancer"
	allowed    = "service.beta.kubernetes.io/azure-load-balancer-configurations"
)

// machine creates a node of a virtual machine in a scale set or an availability set.
func (l *lab) machine(name, ip, scaleSet, availabilitySet string) {
	l.t.Helper()
	id := compute + "/virtualMachines/" + name
	if scaleSet != "" {
		id = compute + "/virtualMachineScaleSets/" + scaleSet + "/virtualMachines/0"
	} else {
		l.must(l.emulator.Put(id, []byte(fmt.Sprintf(`{"location":"eastus","properties":{"availabilitySet":{"id":"%s/availabilitySets/%s"}}}`, compute, availabilitySet))))
	}
	node := l.node(name, ip)
	var n corev1.Node
	l.editObject(key("", node), &n, func() { n.Spec.ProviderID = "azure://" + id })
}

// kubectl returns kubectl's output.
func (l *lab) kubectl(args ...string) string {
	l.t.Helper()
	out, err := l.cluster.kubectl(l.t.Context(), args...)
	if err != nil {
		l.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// expectNodeLabels waits until each node's label names the load balancer.
func (l *lab) expectNodeLabels(want map[string]string) {
	l.t.Helper()
	l.eventually("labels of nodes", func() error {
		got := map[string]string{}
		for name := range want {
			var n corev1.Node
			l.must(l.cluster.Get(l.t.Context(), key("", l.namespace+"-"+name), &n))
			got[name] = n.Labels[placeLabel]
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("are %v, want %v", got, want)
		}
		return nil
	})
}

// expectNodePool waits until the node pool of a load balancer holds these addresses.
func (l *lab) expectNodePool(balancer string, want ...string) {
	l.t.Helper()
	l.eventually("nodes of "+balancer, func() error {
		if got := l.addresses(network+"/loadBalancers/"+balancer, l.namespace); !slices.Equal(got, want) {
			return fmt.Errorf("are %v, want %v", got, want)
		}
		return nil
	})
}

// expectPlacement waits until a Service is on the load balancer and has an address.
func (l *lab) expectPlacement(service, balancer string) {
	l.t.Helper()
	l.eventually("place of Service "+service, func() error {
		var s corev1.Service
		l.must(l.cluster.Get(l.t.Context(), key(l.namespace, service), &s))
		rule := "rule " + l.owner(service) + "-TCP-80"
		if got := s.Annotations["weir.dev/load-balancer"]; got != balancer || len(s.Status.LoadBalancer.Ingress) != 1 || !slices.Contains(l.parts(network+"/loadBalancers/"+balancer), rule) {
			return fmt.Errorf("is %q with %v, want %s", got, s.Status.LoadBalancer.Ingress, balancer)
		}
		return nil
	})
}

// With two load balancers, nodes are placed by their machine's set, and Services by annotation,
// namespace labels or free capacity. A restart changes nothing.
func TestSeveralLoadBalancers(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	single, two := l.namespace, l.namespace+"-2"
	l.createTwoLoadBalancers(single, two)
	l.withoutAdminStates()
	run := func() *program {
		return l.controller("--leader-elect=false", "--leader-elect-namespace", "weir-system", "--cluster-name", single)
	}
	weir := run()
	l.expectMissingRole(weir)

	l.expectNodeLabels(map[string]string{"s1": single, "s2": single, "m1": two, "m2": single})
	for _, name := range []string{"a", "b", "local"} {
		l.expectPlacement(name, single)
	}
	l.expectPlacement("inside", single+"-internal")
	l.expectNodePool(single, "10.0.0.1", "10.0.0.2", "10.0.0.4")
	l.expectNodePool(single+"-internal", "10.0.0.1", "10.0.0.2", "10.0.0.4")
	for _, vm := range []string{"m1", "m2"} {
		if n := l.reads(compute + "/virtualMachines/" + vm); n != 1 {
			t.Errorf("machine %s was read %d times, want once", vm, n)
		}
	}

	// The namespace labels select the second one; an annotation keeps one Service in place.
	l.kubectl("label", "namespace", l.namespace, "team=shop")
	l.expectPlacement("a", two)
	l.expectPlacement("local", two)
	l.expectPlacement("inside", two+"-internal")
	l.expectPlacement("b", single)
	l.expectNodePool(two, "10.0.0.3")
	l.expectNodePool(two+"-internal", "10.0.0.3")

	// An annotation moves a Service completely.
	l.edit("b", func(s *corev1.Service) { s.Annotations[allowed] = two })
	l.expectPlacement("b", two)
	l.eventually("the first one", func() error {
		if parts := l.parts(network + "/loadBalancers/" + single); len(parts) != 0 {
			return fmt.Errorf("still has %v", parts)
		}
		return nil
	})
	t.Logf("%s", l.kubectl("get", "nodes", "-L", placeLabel))
	t.Logf("%s", l.kubectl("get", "backendpools", "-A"))

	l.restartsUnchanged(weir, run, two)
	for _, name := range []string{"a", "b", "local", "inside"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}}
		l.must(l.cluster.Delete(t.Context(), s))
		l.gone("Service "+name, s)
	}
	for _, balancer := range []string{single, two, single + "-internal", two + "-internal"} {
		if body, ok := l.emulator.Get(network + "/loadBalancers/" + balancer); ok {
			t.Errorf("left in Azure: %s", body)
		}
	}
}

// createTwoLoadBalancers creates two load balancers, four nodes and four Services.
func (l *lab) createTwoLoadBalancers(single, two string) {
	l.t.Helper()
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", fmt.Sprintf(`{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus",
		"loadBalancerBackendPoolUpdateIntervalInSeconds":1,"enableNodeAdminState":false,"multipleStandardLoadBalancerConfigurations":[
		{"name":%q,"primaryVMSet":"pool-1"},
		{"name":%q,"primaryVMSet":"as-2","nodeSelector":{"matchLabels":{"team":"shop"}},
		 "serviceNamespaceSelector":{"matchLabels":{"team":"shop"}}}]}`, single, two))
	l.machine("s1", "10.0.0.1", "pool-1", "")
	l.machine("s2", "10.0.0.2", "pool-2", "")
	l.machine("m1", "10.0.0.3", "", "as-2")
	l.machine("m2", "10.0.0.4", "", "as-3")
	toAll := func(annotation, value string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
			s.Annotations[annotation] = value
		}
	}
	l.createLoadBalancerService("a", toAll(allowed, ""))
	l.createLoadBalancerService("b", toAll(allowed, single))
	l.createLoadBalancerService("local", nil, l.namespace+"-m1")
	l.createLoadBalancerService("inside", toAll("service.beta.kubernetes.io/azure-load-balancer-internal", "true"))
}

// withoutAdminStates removes the admin state role until the test ends: it also allows patching
// nodes, and another role that does is under test.
func (l *lab) withoutAdminStates() {
	l.t.Helper()
	l.kubectl("delete", "-k", "../../config/admin-state")
	l.t.Cleanup(func() {
		if out, err := l.cluster.kubectl(context.WithoutCancel(l.t.Context()), "apply", "--server-side", "-k", "../../config/admin-state"); err != nil {
			l.t.Errorf("%v: %s", err, out)
		}
	})
}

// expectMissingRole checks that the controller logs its missing permissions for several load balancers,
// then grants them.
func (l *lab) expectMissingRole(weir *program) {
	l.t.Helper()
	l.eventually("the log", func() error {
		if !strings.Contains(weir.ReadOutput(), `cannot patch resource \"nodes\"`) {
			return errors.New("does not speak of nodes")
		}
		return nil
	})
	l.kubectl("apply", "--server-side", "-k", "../../config/several-load-balancers")
	l.t.Cleanup(func() {
		_, _ = l.cluster.kubectl(context.WithoutCancel(l.t.Context()), "delete", "-k", "../../config/several-load-balancers")
	})
}

// restartsUnchanged kills and restarts the controller, which re-reads its state and changes neither
// nodes nor Azure.
func (l *lab) restartsUnchanged(weir *program, run func() *program, balancer string) {
	l.t.Helper()
	before := l.nodeVersions()
	weir.Kill()
	at := len(l.emulator.Calls())
	machine, balancers := compute+"/virtualMachines/m2", network+"/loadBalancers/"+balancer
	machines, compared := l.reads(machine), l.reads(balancers)
	l.env = []string{noStreams}
	run()
	l.eventually("what is read again", func() error {
		if l.reads(machine) == machines || l.reads(balancers) == compared {
			return errors.New("not yet")
		}
		return nil
	})
	time.Sleep(3 * time.Second) // time for a wrong write
	for _, call := range l.emulator.Calls()[at:] {
		if call.Method != "GET" {
			l.t.Errorf("after the restart: %s %s", call.Method, call.Path)
		}
	}
	if after := l.nodeVersions(); !slices.Equal(before, after) {
		l.t.Errorf("the restart changed nodes: %v, before %v", after, before)
	}
}

func (l *lab) nodeVersions() []string {
	l.t.Helper()
	var versions []string
	for _, name := range []string{"s1", "s2", "m1", "m2"} {
		var n corev1.Node
		l.must(l.cluster.Get(l.t.Context(), key("", l.namespace+"-"+name), &n))
		versions = append(versions, n.ResourceVersion)
	}
	return versions
}

// reads counts the reads of a single resource.
func (l *lab) reads(id string) int {
	n := 0
	for _, call := range l.emulator.Calls() {
		if call.Method == "GET" && strings.EqualFold(call.Path, id) {
			n++
		}
	}
	return n
}
