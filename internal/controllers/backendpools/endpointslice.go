// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/pool/schedule"
)

// servicesOfSlice maps a slice to its Service. A slice that moves affects both Services.
func (r *Reconciler) servicesOfSlice(_ context.Context, obj client.Object) []reconcile.Request {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	return r.requestIfBound(cache.ServiceOfSlice(s))
}

// requestIfBound returns a request for a Service that a BackendPool refers to.
func (r *Reconciler) requestIfBound(name schedule.ServiceName) []reconcile.Request {
	if name.Name == "" || len(r.view.PoolsOf(name)) == 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: name.Namespace, Name: name.Name}}}
}

// sliceChanged drops updates that change no endpoint. Those that keep the members pass if a pool of
// the Service is out of sync, where they trigger another attempt.
func (r *Reconciler) sliceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*discoveryv1.EndpointSlice)
		after, ok2 := u.ObjectNew.(*discoveryv1.EndpointSlice)
		if !ok1 || !ok2 {
			return false
		}
		// After a lost watch, another object of the same name, with another address type, may
		// arrive as an update.
		if before.UID != after.UID || cache.ServiceOfSlice(before) != cache.ServiceOfSlice(after) || !cache.SameMembers(before, after) {
			return true
		}
		// The generation also covers fields the cache drops, such as the pod address.
		return before.Generation != after.Generation && !r.allInSync(cache.ServiceOfSlice(after))
	}}
}

func (r *Reconciler) allInSync(service schedule.ServiceName) bool {
	for _, p := range r.view.PoolsOf(service) {
		if !r.Statuses.IsInSync(p) {
			return false
		}
	}
	return true
}

// poolsOfExcludedNodes maps a slice to the node pools of excluded nodes that host its endpoints:
// such a node leaves once it hosts none.
func (r *Reconciler) poolsOfExcludedNodes(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	for _, name := range cache.NodesOf(s) {
		if n := cache.Get[corev1.Node](r.view.Nodes, name); n != nil && r.view.NodeOf(n).StaysWhileServing {
			requests = append(requests, r.poolsOfNode(ctx, n)...)
		}
	}
	return requests
}

func (r *Reconciler) hostsChanged() predicate.Predicate {
	return k8s.UpdatePredicate(func(before, after *discoveryv1.EndpointSlice) bool { return !cache.SameMembers(before, after) })
}
