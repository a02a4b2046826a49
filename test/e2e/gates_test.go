// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

// enableGates installs the policy for the namespace.
func (l *lab) enableGates() {
	l.t.Helper()
	l.kubectl("apply", "--server-side", "-k", "../../config/readiness-gates")
	l.t.Cleanup(func() {
		if out, err := l.cluster.kubectl(context.WithoutCancel(l.t.Context()), "delete", "-k", "../../config/readiness-gates"); err != nil {
			l.t.Errorf("%v: %s", err, out)
		}
	})
	l.kubectl("label", "namespace", l.namespace, "weir.dev/readiness-gates=enabled")
}

// servingPod creates a pod of the Service web on a node, once the policy adds gates.
func (l *lab) servingPod(name, node string) {
	l.t.Helper()
	l.gatedPod("web", name, node)
}

func (l *lab) gatedPod(app, name, node string) {
	l.t.Helper()
	l.eventually("pod "+name, func() error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{"app": app}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}
		checked := pod.DeepCopy()
		if err := l.cluster.Create(l.t.Context(), checked, client.DryRunAll); err != nil || len(checked.Spec.ReadinessGates) != 1 {
			return fmt.Errorf("gates %v: %w", checked.Spec.ReadinessGates, err)
		}
		return l.cluster.Create(l.t.Context(), pod)
	})
}

// expectGate waits until a gate is open.
func (l *lab) expectGate(pod, reason string) {
	l.t.Helper()
	l.eventually("gate of pod "+pod, func() error {
		var p corev1.Pod
		l.must(l.cluster.Get(l.t.Context(), key(l.namespace, pod), &p))
		for _, c := range p.Status.Conditions {
			if c.Type == "weir.dev/in-pool" && c.Status == corev1.ConditionTrue && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("has conditions %v, want reason %s", p.Status.Conditions, reason)
	})
}

// startEndpoint adds an endpoint that is not ready yet.
func (l *lab) startEndpoint(service, node string) {
	l.t.Helper()
	var slice discoveryv1.EndpointSlice
	l.must(l.cluster.Get(l.t.Context(), key(l.namespace, service+"-1"), &slice))
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{"10.244.0.9"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)},
	})
	l.must(l.cluster.Update(l.t.Context(), &slice))
}

// The leader opens gates by what it reads of Azure, without a write for a node that is a member. While the Lease is held and not renewed, a standby
// opens them after a minute.
func TestReadinessGatesWithAndWithoutALeader(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.enableGates()
	flags := []string{"--cluster-name", l.namespace, "--readiness-gates"}
	leader := l.controller(flags...)
	node := l.node("n1", "10.0.0.1")
	l.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} }, node)
	l.ingress("web", 1)
	l.becomes(l.namespace+"-web", "10.0.0.1")
	writes := l.writes(l.namespace + "-web")
	l.servingPod("web-1", node)
	l.expectGate("web-1", "InPool")
	l.expectMetric(leader, `weir_readiness_gates_opened_total{reason="InPool"} 1`)
	if after := l.writes(l.namespace + "-web"); after != writes {
		t.Errorf("%d writes", after-writes)
	}

	// A pod that starts makes its node a member, and the gate opens by that.
	starting := l.node("n2", "10.0.0.2")
	l.servingPod("web-0", starting)
	l.startEndpoint("web", starting)
	l.expectGate("web-0", "InPool")
	l.becomes(l.namespace+"-web", "10.0.0.1", "10.0.0.2")

	standby := l.controller(flags...)
	l.waitStandby(standby)
	leader.Kill()
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}}
	l.must(l.cluster.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"hangs","leaseDurationSeconds":3600}}`))))
	l.servingPod("web-2", node)
	l.expectGate("web-2", "LeaderAway")
	l.expectMetric(standby, `weir_readiness_gates_opened_total{reason="LeaderAway"} 1`)
	l.expectMetric(standby, `weir_readiness_gates_waiting 0`)
}
