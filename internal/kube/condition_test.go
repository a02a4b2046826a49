// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/kube/nodes"
)

// hasCondition sets a condition of the n-th node, as an agent with rights to nodes/status does.
func (s *scene) hasCondition(n int, c corev1.NodeCondition) {
	s.Helper()
	node := get[corev1.Node](s, "", s.node(n))
	kept := node.Status.Conditions[:0:0]
	for _, other := range node.Status.Conditions {
		if other.Type != c.Type {
			kept = append(kept, other)
		}
	}
	kept = append(kept, c)
	node.Status.Conditions = kept
	if err := api.Status().Update(s.Context(), node); err != nil {
		s.Fatal(err)
	}
}

// A node condition that announces an eviction taints the node once per transition to True.
func TestAConditionThatAnnouncesAnEvictionTaintsItsNode(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.hasNode(1)
	s.hasNode(2)
	preempted := func(at time.Time, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: "PreemptionScheduled", Status: status, Reason: "SpotEvictionIncoming",
			Message:            "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT.",
			LastTransitionTime: metav1.NewTime(at), LastHeartbeatTime: metav1.Now(),
		}
	}
	now := time.Now()
	s.hasCondition(1, preempted(now, corev1.ConditionFalse))
	s.hasCondition(2, corev1.NodeCondition{Type: "VMEventScheduled", Status: corev1.ConditionTrue, Message: "Freeze Scheduled: soon", LastTransitionTime: metav1.Now()})
	s.settles()
	s.isTainted(1, "")
	s.isTainted(2, "")

	s.hasCondition(1, preempted(now, corev1.ConditionTrue))
	s.isTainted(1, spotTaint)
	s.isNoted(1, "condition PreemptionScheduled")
	s.drains(1, "spot-eviction")
	s.wasToldOfNode(1, nodes.EventTainted, 1)
	s.hasCondition(2, corev1.NodeCondition{Type: "VMEventScheduled", Status: corev1.ConditionTrue, Message: "Preempt Scheduled: soon", LastTransitionTime: metav1.Now()})
	s.isTainted(2, spotTaint)

	// Neither the still true condition nor an event of that eviction restores a removed taint.
	s.taint(1)
	s.drains(1, "")
	s.hasCondition(1, preempted(now, corev1.ConditionTrue))
	s.settles()
	s.isTainted(1, "")
	s.hasCondition(1, preempted(now.Add(time.Minute), corev1.ConditionTrue))
	s.isTainted(1, spotTaint)
	s.wasToldOfNode(1, nodes.EventTainted, 2)
}
