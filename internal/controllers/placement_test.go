// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// A cluster gets a second load balancer and gives it up again. No node leaves a pool before its
// place is known.
func TestNodesArePlacedOnSeveralLoadBalancers(t *testing.T) {
	s := newPlacementEnv(t)
	first := service.Configuration{Name: s.ns, PrimaryVMSet: "Pool-A"}
	second := service.Configuration{Name: s.second, PrimaryVMSet: "as-b"}
	s.createScaleSetNode(1, "pool-a")
	s.createScaleSetNode(2, "pool-c")
	s.createMachineNode(3, "as-b")
	s.createMachineNode(4, "")
	s.createNodeService("all", "")
	s.restartWith()
	s.waitForPlace("all", s.ns)
	s.waitForShared(s.ns, 1, 2, 3, 4)
	s.waitForSelector(s.ns, "")
	if s.nodeLabel(1) != "" || len(s.machineReads(3)) != 0 {
		t.Error("with one load balancer nodes are labelled, or machines read")
	}

	s.addSecond(first, second)
	s.growBoth()
	s.restartUnchanged(first, second)

	// A manual label moves a node without a scale set, and is kept.
	change(s.testEnv, "", s.node(4), func(n *corev1.Node) { n.Labels[metadata.PlaceLabel] = s.second })
	change(s.testEnv, "", s.node(1), func(n *corev1.Node) { n.Labels[metadata.PlaceLabel] = s.second })
	s.waitForShared(s.second, 3, 4, 5)
	s.waitForLabels(map[int]string{1: s.ns, 4: s.second})

	s.restartWith()
	s.waitForSelector(s.ns, "")
	s.waitForShared(s.ns, 1, 2, 3, 4, 5)
	// Its public IP is still on the second one, which remains recorded.
	s.waitForPlace("two", s.ns+","+s.second)
}

// addSecond restarts while Azure throttles reads: nothing moves.
func (env *placementEnv) addSecond(first, second service.Configuration) {
	env.Helper()
	env.setMachineResults(3, throttled)
	env.restartWith(first, second)
	env.waitForLabels(map[int]string{1: env.ns, 3: ""})
	env.waitForPlacementEvent(3, "SomeThrottle")
	if got := env.sharedAddresses(env.ns); len(got) != 4 || env.selector(env.ns) != "" {
		env.Errorf("before all places are known the pool holds %v and selects %q", got, env.selector(env.ns))
	}
	env.waitForLabels(map[int]string{1: env.ns, 2: env.ns, 3: env.second, 4: env.ns}) // 2 and 4 keep the place Azure shows
	env.waitForShared(env.ns, 1, 2, 4)
	env.waitForSelector(env.ns, env.ns)
	if at := env.machineReads(3); len(at) != 2 || at[1].Sub(at[0]) < retryAfter-time.Second {
		env.Errorf("machine 3 was read at %v, want twice, and not before Azure's %s", at, retryAfter)
	}
	if at := env.machineReads(4); len(at) != 1 {
		env.Errorf("machine 4 was read %d times, want once", len(at))
	}
}

func (env *placementEnv) growBoth() {
	env.Helper()
	env.createNodeService("two", env.second)
	env.waitForPlace("two", env.second)
	env.waitForShared(env.second, 3)
	env.createScaleSetNode(5, "pool-c")
	env.waitForLabels(map[int]string{5: env.second})
	env.waitForShared(env.second, 3, 5)
	env.waitForShared(env.ns, 1, 2, 4)
}

func (env *placementEnv) restartUnchanged(first, second service.Configuration) {
	env.Helper()
	before, writes := env.nodeVersions(5), env.armWrites()
	env.restartWith(first, second)
	env.waitUntil(func() string {
		if len(env.machineReads(4)) < 2 || len(env.machineReads(3)) < 3 {
			return "the machines are not read again yet"
		}
		return ""
	})
	env.waitForReads()
	if after := env.nodeVersions(5); !slices.Equal(before, after) || len(env.armWrites()) != len(writes) {
		env.Errorf("a restart changed nodes %v to %v, or wrote to Azure: %v", before, after, env.armWrites()[len(writes):])
	}
}

// Labels of a namespace and of a Service move a Service; other labels do not.
func TestLabelsMoveAService(t *testing.T) {
	s := newPlacementEnv(t)
	of := func(team string) service.Selector {
		return func(labels map[string]string) bool { return labels["team"] == team }
	}
	s.createScaleSetNode(1, "pool-a")
	s.createScaleSetNode(2, "pool-b")
	s.createNodeService("all", "")
	s.restartWith(service.Configuration{Name: s.ns, Nodes: func(map[string]string) bool { return false }},
		service.Configuration{Name: s.second, Services: of("shop")},
		service.Configuration{Name: s.ns + "-3", Namespaces: of("shop"), Closed: false, Nodes: func(l map[string]string) bool { return l["zone"] == "3" }})
	s.waitForPlace("all", s.ns)
	s.waitForLabels(map[int]string{1: s.second, 2: s.second})
	s.waitForShared(s.ns)

	s.waitForReads()
	calls := len(s.azureCalls())
	change(s.testEnv, s.ns, "all", func(svc *corev1.Service) { svc.Labels = map[string]string{"chart": "web-2"} })
	s.waitForReads()
	if n := len(s.azureCalls()) - calls; n != 0 {
		t.Errorf("%d calls to Azure for a label that selects nothing", n)
	}
	change(s.testEnv, s.ns, "all", func(svc *corev1.Service) { svc.Labels["team"] = "shop" })
	s.waitForPlace("all", s.second)
	s.waitForShared(s.second, 1, 2)

	change(s.testEnv, s.ns, "all", func(svc *corev1.Service) { delete(svc.Labels, "team") })
	s.waitForPlace("all", s.ns)
	change(s.testEnv, "", s.ns, func(ns *corev1.Namespace) { ns.Labels["team"] = "shop" })
	s.waitForPlace("all", s.ns+"-3")

	// A node moves when a selector matches it, and is on no load balancer when none does.
	change(s.testEnv, "", s.node(1), func(n *corev1.Node) { n.Labels["zone"] = "3" })
	s.waitForLabels(map[int]string{1: s.ns + "-3", 2: s.second})
	s.waitForShared(s.ns+"-3", 1)
}

// An unplaced node prevents only that a node pool is taken, since members might be lost. Node and
// Service report the reason.
func TestNodesThatCannotBePlaced(t *testing.T) {
	s := newPlacementEnv(t)
	s.createMachineNode(1, "as-a")
	s.createMachineNode(2, "as-b")
	s.createNode(3) // its machine is unknown
	s.setMachineResults(2, slices.Repeat([]injectedResult{refused}, 1000)...)
	s.createNodeService("all", "")
	s.restartWith(service.Configuration{Name: s.ns, PrimaryVMSet: "as-a"}, service.Configuration{Name: s.second, PrimaryVMSet: "as-b"})
	s.waitForLabels(map[int]string{1: s.ns, 2: "", 3: ""})
	s.waitForPlacementEvent(2, "InvalidRequestFormat")
	s.waitUntil(func() string {
		for _, m := range s.messages("Service", "all", services.EventSyncFailed) {
			if strings.Contains(m, "and "+s.node(2)+" is not: read virtual machine") {
				return ""
			}
		}
		return fmt.Sprintf("the Service does not say why: %v", s.messages("Service", "all", services.EventSyncFailed))
	})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "nodes." + s.ns}, &v1alpha1.BackendPool{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pool of nodes before the nodes are placed: %v", err)
	}
	// A manual label or exclusion resolves it.
	change(s.testEnv, "", s.node(2), func(n *corev1.Node) { n.Labels = map[string]string{metadata.PlaceLabel: s.ns} })
	change(s.testEnv, "", s.node(3), func(n *corev1.Node) {
		n.Labels = map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": ""}
	})
	s.waitForPlace("all", s.ns)
	s.waitForShared(s.ns, 1, 2)
}
