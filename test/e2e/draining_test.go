// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

// With the shipped roles, a node with an eviction notice is tainted and counted, and so is one with
// a taint added by azure.json.
func TestASpotEvictionTaintsItsNode(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","nodeAdminStateTaints":["example.com/leaves=`+l.namespace+`"]}`)
	l.env = []string{noStreams}
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	weir := l.controller("--leader-elect=false")
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: l.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: n1}, Reason: "PreemptScheduled",
		Source: corev1.EventSource{Component: "node-problem-detector", Host: n1},
	}
	l.must(l.cluster.Create(t.Context(), event))
	t.Cleanup(func() { _ = l.cluster.Delete(context.WithoutCancel(t.Context()), event) })
	if out, err := l.cluster.kubectl(t.Context(), "taint", "node", n2, "example.com/leaves="+l.namespace+":NoSchedule"); err != nil {
		t.Fatal(out)
	}
	l.eventually("the node is tainted", func() error {
		out, err := l.cluster.kubectl(t.Context(), "get", "node", n1, "-o", "jsonpath={.spec.taints}")
		if err == nil && !strings.Contains(out, "spot-eviction") {
			err = errors.New(out)
		}
		return err
	})
	l.eventually("kubectl describe node tells why", func() error {
		out, err := l.cluster.kubectl(t.Context(), "describe", "node", n1)
		if err == nil && !strings.Contains(out, "SpotEvictionTaintAdded") {
			err = errors.New(out)
		}
		return err
	})
	l.eventually("both are counted", func() error {
		body, err := get(weir.metrics, "/metrics")
		for _, series := range []string{`out-of-service"} 0`, `spot-eviction"} 1`, `example.com/leaves=` + l.namespace + `"} 1`} {
			if err == nil && !strings.Contains(body, `weir_nodes_draining{reason="`+series) {
				err = fmt.Errorf("no %s", series)
			}
		}
		return err
	})
}

// Events written by tenants in their namespaces, or forged in default, taint no node and set
// nothing Down. If many notices are trusted, half of each pool is kept up.
func TestTenantEventsTaintNoNode(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1, n2)
	l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1", "10.0.0.2")
	announce := func(namespace, node, reporter string) {
		t.Helper()
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: l.namespace + "-"},
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: node}, Reason: "PreemptScheduled",
			Source: corev1.EventSource{Component: reporter},
		}
		if namespace != "default" {
			e.InvolvedObject.Namespace = namespace
		}
		l.must(l.cluster.Create(t.Context(), e))
		t.Cleanup(func() { _ = l.cluster.Delete(context.WithoutCancel(t.Context()), e) })
	}
	const reporter = "custom-scheduledevents-consolidated-preempt-plugin-monitor"
	for _, node := range []string{n1, n2} {
		announce(l.namespace, node, reporter)
		announce("default", node, "kubectl")
	}
	last := l.node("n3", "10.0.0.3")
	announce("default", last, reporter)
	l.eventually("the last announcement is judged", func() error {
		out, err := l.cluster.kubectl(t.Context(), "get", "node", last, "-o", "jsonpath={.spec.taints}")
		if err == nil && !strings.Contains(out, "spot-eviction") {
			err = errors.New(out)
		}
		return err
	})
	if out, err := l.cluster.kubectl(t.Context(), "get", "node", n1, n2, "-o", "jsonpath={.items[*].spec.taints}"); err != nil || strings.Contains(out, "spot-eviction") {
		t.Fatalf("%v: %s", err, out)
	}
	l.expectDown("web")
	announce("default", n1, reporter)
	l.expectDown("web", "10.0.0.1")
	announce("default", n2, reporter)
	l.expectEvents("web", "SpotEvictionsHeldBack")
	l.expectDown("web", "10.0.0.1")
}

// A draining node takes no new flows: its address is Down in every pool while it has the taint,
// even if the taint is removed while no controller runs; membership is unchanged, and no Service
// gets an event.
func TestADrainingNodeIsDown(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1, n2)
	weir := l.controller("--leader-elect=false")
	l.becomes("web", "10.0.0.1", "10.0.0.2")
	l.expectEvents("web", "LoadBalancerBackendPoolUpdated")
	updates := l.updates("web")

	taint := func(about string) {
		t.Helper()
		if out, err := l.cluster.kubectl(t.Context(), "taint", "node", n1, "node.kubernetes.io/out-of-service"+about); err != nil {
			t.Fatal(out)
		}
	}
	taint("=nodeshutdown:NoExecute")
	l.expectDown("web", "10.0.0.1")
	l.becomes("web", "10.0.0.1", "10.0.0.2")
	l.eventually("the record", func() error {
		out, err := l.cluster.kubectl(t.Context(), "-n", l.namespace, "get", "backendpool", "web", "-o", "jsonpath={.status.down[*].address} {.status.down[*].reason}")
		if err == nil && out != "10.0.0.1 out-of-service" {
			err = fmt.Errorf("says %q", out)
		}
		return err
	})
	l.expectEvents("web", "LoadBalancerAdminStateDown")
	l.eventually("what it took", func() error {
		body, err := get(weir.metrics, "/metrics")
		for _, series := range []string{"weir_taint_to_down_seconds_count 1", `cloudprovider_azure_op_duration_seconds_count{request="loadbalancer_adminstate_update_backend_pool",`} {
			if err == nil && !strings.Contains(body, "\n"+series) {
				err = fmt.Errorf("no %s", series)
			}
		}
		return err
	})
	taint("-")
	l.expectDown("web")
	l.expectEvents("web", "LoadBalancerAdminStateRestored")

	taint("=nodeshutdown:NoExecute")
	l.expectDown("web", "10.0.0.1")
	l.eventually("the end of the fourth write", func() error {
		if n := strings.Count(weir.ReadOutput(), `"msg":"pool written"`); n != 4 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	weir.Kill()
	taint("-")
	l.controller("--leader-elect=false")
	l.expectDown("web")
	if after := l.updates("web"); after != updates {
		t.Errorf("the Service heard %d times of its members, and %d times before", after, updates)
	}
}

// A draining node is Down in a pool of network interfaces, too.
func TestADrainingNodeIsDownInAPoolOfInterfaces(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.pool("web")
	n1 := l.node("n1", "10.0.0.1")
	vm, nic := "/subscriptions/sub/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/n1", "/subscriptions/sub/resourceGroups/nodes/providers/Microsoft.Network/networkInterfaces/nic"
	l.must(l.emulator.Put(vnet, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`)))
	l.must(l.emulator.Put(nic, []byte(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"`+vnet+`/subnets/nodes"},
		"loadBalancerBackendAddressPools":[{"id":"`+l.loadBalancer()+`/backendAddressPools/web"}]}}]}}`)))
	l.must(l.emulator.Put(vm, []byte(`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nic+`"}]}}}`)))
	if out, err := l.cluster.kubectl(t.Context(), "patch", "node", n1, "-p", `{"spec":{"providerID":"azure://`+vm+`"}}`); err != nil {
		t.Fatal(out)
	}
	l.service("web", n1)
	l.controller("--leader-elect=false")
	l.expectStatusText("web", "holds network interfaces")
	if out, err := l.cluster.kubectl(t.Context(), "taint", "node", n1, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"); err != nil {
		t.Fatal(out)
	}
	l.expectStatusText("web", "Nodes that leave are Down in it all the same")
	body, _ := l.emulator.Get(l.loadBalancer() + "/backendAddressPools/web")
	if text := string(body); strings.Count(text, `"adminState"`) != 1 || !strings.Contains(strings.ReplaceAll(text, " ", ""), `"adminState":"Down"`) {
		t.Error(text)
	}
}

// updates counts a Service's events for written members.
func (l *lab) updates(service string) int {
	l.t.Helper()
	out, err := l.cluster.kubectl(l.t.Context(), "-n", l.namespace, "get", "events", "--field-selector",
		"involvedObject.name="+service+",reason=LoadBalancerBackendPoolUpdated", "-o", "jsonpath={.items[*].count}")
	if err != nil {
		l.t.Fatal(out)
	}
	n := 0
	for word := range strings.FieldsSeq(out) {
		count, err := strconv.Atoi(word)
		l.must(err)
		n += count
	}
	return n
}

// expectDown waits until exactly these addresses of a pool are Down in Azure.
func (l *lab) expectDown(pool string, want ...string) {
	l.t.Helper()
	l.eventually("admin states of pool "+pool, func() error {
		body, _ := l.emulator.Get(l.loadBalancer() + "/backendAddressPools/" + pool)
		var p struct {
			Properties struct {
				LoadBalancerBackendAddresses []struct {
					Properties struct{ IPAddress, AdminState string }
				}
			}
		}
		l.must(json.Unmarshal(body, &p))
		var down []string
		for _, a := range p.Properties.LoadBalancerBackendAddresses {
			if a.Properties.AdminState == "Down" {
				down = append(down, a.Properties.IPAddress)
			}
		}
		if !slices.Equal(down, want) {
			return fmt.Errorf("Down are %v, want %v", down, want)
		}
		return nil
	})
}
