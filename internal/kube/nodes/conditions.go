// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/kube/view"
)

// evictionOf returns the latest eviction that the conditions of a node announce, and the type of
// that condition. Its time is that of the node's clock, and never before the node was created: the
// condition is the node's own.
func evictionOf(n *corev1.Node) (e adminstate.Event, condition string) {
	for _, c := range n.Status.Conditions {
		if !view.ConditionOf(c).Announces() {
			continue
		}
		at := later(c.LastTransitionTime.Time, n.CreationTimestamp.Time)
		if condition == "" || at.After(e.Created) {
			e, condition = adminstate.Event{UID: "condition " + string(c.Type), Created: at, Transition: true}, string(c.Type)
		}
	}
	return e, condition
}

// evictionChanged lets those nodes through whose conditions announce another eviction than before.
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

// nodeItself is the request of a node: it has no namespace, as those of events have.
func nodeItself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: obj.GetName()}}}
}

// reconcileConditions puts the taint of a spot eviction on a node whose condition announces one.
func (e *Evictions) reconcileConditions(ctx context.Context, name string) error {
	n := view.Get[corev1.Node](e.Nodes.Nodes, name)
	if n == nil {
		return nil
	}
	_, condition := evictionOf(n)
	if verdict, _ := judgedByCondition(n); verdict == adminstate.Ignore {
		return nil
	}
	return e.taint(ctx, name, "condition "+condition, judgedByCondition)
}

// judgedByCondition asks what its conditions do to a node.
func judgedByCondition(n *corev1.Node) (adminstate.Verdict, adminstate.Record) {
	occurred, condition := evictionOf(n)
	if condition == "" {
		return adminstate.Ignore, adminstate.Record{}
	}
	return judged(n, occurred, false)
}
