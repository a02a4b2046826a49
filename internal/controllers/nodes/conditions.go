// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
)

// evictionOf returns the latest eviction announced by a node's conditions, and the condition type. Its time
// is by the node's clock, but not before the node's creation, because earlier conditions are of a
// predecessor.
func evictionOf(n *corev1.Node) (e lb.TaintEvent, condition string) {
	for _, c := range n.Status.Conditions {
		if !cache.ConditionOf(c).IsEviction() {
			continue
		}
		at := laterTime(c.LastTransitionTime.Time, n.CreationTimestamp.Time)
		if condition == "" || at.After(e.Created) {
			e, condition = lb.TaintEvent{UID: "condition " + string(c.Type), Created: at, Transition: true}, string(c.Type)
		}
	}
	return e, condition
}

// evictionChanged passes nodes with conditions that announce a new eviction.
func evictionChanged() predicate.Predicate {
	announces := func(obj client.Object) lb.TaintEvent {
		n, ok := obj.(*corev1.Node)
		if !ok {
			return lb.TaintEvent{}
		}
		e, _ := evictionOf(n)
		return e
	}
	return predicate.Funcs{
		CreateFunc: func(c event.CreateEvent) bool { return announces(c.Object) != lb.TaintEvent{} },
		UpdateFunc: func(u event.UpdateEvent) bool {
			after := announces(u.ObjectNew)
			return after != lb.TaintEvent{} && after != announces(u.ObjectOld)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// nodeRequest maps a node to its request, which has no namespace, unlike those of events.
func nodeRequest(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: obj.GetName()}}}
}

// reconcileConditions adds the spot eviction taint to a node with a condition that announces an eviction.
func (e *Evictions) reconcileConditions(ctx context.Context, name string) error {
	n := cache.Get[corev1.Node](e.Nodes.Nodes, name)
	if n == nil {
		return nil
	}
	_, condition := evictionOf(n)
	if action, _ := evaluateConditions(n); action == lb.EvictionIgnored {
		return nil
	}
	return e.writeTaint(ctx, name, "condition "+condition, evaluateConditions)
}

func evaluateConditions(n *corev1.Node) (lb.EvictionAction, lb.EvictionRecord) {
	occurred, condition := evictionOf(n)
	if condition == "" {
		return lb.EvictionIgnored, lb.EvictionRecord{}
	}
	return evaluateEviction(n, occurred, false)
}
