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
	"weir.dev/weir/internal/lb/adminstate"
)

// evictionOf returns the latest eviction announced by a node's conditions, and the condition type. Its time
// is by the node's clock, but not before the node's creation, because earlier conditions are of a
// predecessor.
func evictionOf(n *corev1.Node) (e adminstate.Event, condition string) {
	for _, c := range n.Status.Conditions {
		if !cache.ConditionOf(c).IsEviction() {
			continue
		}
		at := laterTime(c.LastTransitionTime.Time, n.CreationTimestamp.Time)
		if condition == "" || at.After(e.Created) {
			e, condition = adminstate.Event{UID: "condition " + string(c.Type), Created: at, Transition: true}, string(c.Type)
		}
	}
	return e, condition
}

// evictionChanged passes nodes with conditions that announce a new eviction.
func evictionChanged() predicate.Predicate {
	announces := func(obj client.Object) adminstate.Event {
		n, ok := obj.(*corev1.Node)
		if !ok {
			return adminstate.Event{}
		}
		e, _ := evictionOf(n)
		return e
	}
	return predicate.Funcs{
		CreateFunc: func(c event.CreateEvent) bool { return announces(c.Object) != adminstate.Event{} },
		UpdateFunc: func(u event.UpdateEvent) bool {
			is := announces(u.ObjectNew)
			return is != adminstate.Event{} && is != announces(u.ObjectOld)
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
	if verdict, _ := evaluateConditions(n); verdict == adminstate.ActionIgnore {
		return nil
	}
	return e.writeTaint(ctx, name, "condition "+condition, evaluateConditions)
}

func evaluateConditions(n *corev1.Node) (adminstate.Action, adminstate.Record) {
	occurred, condition := evictionOf(n)
	if condition == "" {
		return adminstate.ActionIgnore, adminstate.Record{}
	}
	return evaluateEviction(n, occurred, false)
}
