// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Mapped is the handler of all events. It queues what the initial list of objects
// brings with low priority, so that a live change goes first however long that list is.
func Mapped(to handler.MapFunc) handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(to) }

// Live drops what the initial list brings: it is no change, and each BackendPool is
// reconciled then for itself.
func Live() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// Changed drops updates of a kind between which nothing differs.
func Changed[T any](differs func(before, after *T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := any(u.ObjectOld).(*T)
		after, ok2 := any(u.ObjectNew).(*T)
		return ok1 && ok2 && differs(before, after)
	}}
}
