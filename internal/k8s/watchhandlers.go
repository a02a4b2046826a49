// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// MapHandler returns the event handler for a map function. The initial list gets low priority.
func MapHandler(to handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(to)
}

// IgnoreInitialList drops objects of the initial list.
func IgnoreInitialList() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// UpdatePredicate drops updates for which differs returns false.
func UpdatePredicate[T any](differs func(before, after *T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := any(u.ObjectOld).(*T)
		after, ok2 := any(u.ObjectNew).(*T)
		return ok1 && ok2 && differs(before, after)
	}}
}
