// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/controllers/nodes"
)

// setNodeCondition sets a condition of the n-th node, as an agent with rights to nodes/status does.
func (env *testEnv) setNodeCondition(n int, c corev1.NodeCondition) {
	env.Helper()
	node := get[corev1.Node](env, "", env.node(n))
	kept := node.Status.Conditions[:0:0]
	for _, other := range node.Status.Conditions {
		if other.Type != c.Type {
			kept = append(kept, other)
		}
	}
	kept = append(kept, c)
	node.Status.Conditions = kept
	if err := api.Status().Update(env.Context(), node); err != nil {
		env.Fatal(err)
	}
}

// A node condition that announces an eviction taints the node once per transition to True.
func TestAConditionThatAnnouncesAnEvictionTaintsItsNode(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createNode(2)
	preempted := func(at time.Time, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: "PreemptionScheduled", Status: status, Reason: "SpotEvictionIncoming",
			Message:            "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT.",
			LastTransitionTime: metav1.NewTime(at), LastHeartbeatTime: metav1.Now(),
		}
	}
	now := time.Now()
	s.setNodeCondition(1, preempted(now, corev1.ConditionFalse))
	s.setNodeCondition(2, corev1.NodeCondition{Type: "VMEventScheduled", Status: corev1.ConditionTrue, Message: "Freeze Scheduled: soon", LastTransitionTime: metav1.Now()})
	s.waitForEvents()
	s.waitForTaints(1, "")
	s.waitForTaints(2, "")

	s.setNodeCondition(1, preempted(now, corev1.ConditionTrue))
	s.waitForTaints(1, spotTaint)
	s.waitForRecord(1, "condition PreemptionScheduled")
	s.waitForDraining(1, "spot-eviction")
	s.waitForNodeEvent(1, nodes.EventTainted, 1)
	s.setNodeCondition(2, corev1.NodeCondition{Type: "VMEventScheduled", Status: corev1.ConditionTrue, Message: "Preempt Scheduled: soon", LastTransitionTime: metav1.Now()})
	s.waitForTaints(2, spotTaint)

	// Neither the still true condition nor an event of that eviction restores a removed taint.
	s.setTaints(1)
	s.waitForDraining(1, "")
	s.setNodeCondition(1, preempted(now, corev1.ConditionTrue))
	s.waitForEvents()
	s.waitForTaints(1, "")
	s.setNodeCondition(1, preempted(now.Add(time.Minute), corev1.ConditionTrue))
	s.waitForTaints(1, spotTaint)
	s.waitForNodeEvent(1, nodes.EventTainted, 2)
}

// A node is Down while a condition of azure.json is True, and no longer.
func TestAConditionOfADrainSetsItsNodeDown(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web")
	s.createNode(1)
	s.createNode(2)
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.createBackendPool("web", "web")
	s.waitForMembers("web", s.ip(1), s.ip(2))
	drains := func(status corev1.ConditionStatus, reason string, down ...string) {
		s.Helper()
		s.setNodeCondition(1, corev1.NodeCondition{Type: "DrainInProgress", Status: status, Reason: "Drain", LastTransitionTime: metav1.Now()})
		s.waitForDraining(1, reason)
		s.waitForDown("web", down...)
	}
	drains(corev1.ConditionTrue, "DrainInProgress", s.node(1))
	drains(corev1.ConditionUnknown, "")
}
