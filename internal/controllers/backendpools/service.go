// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/pool/schedule"
)

// reconcileEndpoints queues an operation for each pool that is not in sync.
func (r *Reconciler) reconcileEndpoints(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name := schedule.ServiceName{Namespace: req.Namespace, Name: req.Name}
	return k8s.ReconcileResult(ctx, r.EndpointsChanged(ctx, name, time.Now()), 0)
}

func (r *Reconciler) boundService(_ context.Context, obj client.Object) []reconcile.Request {
	return r.requestIfBound(schedule.ServiceName{Namespace: obj.GetNamespace(), Name: obj.GetName()})
}

func (r *Reconciler) poolsOfService(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range r.view.PoolsOf(schedule.ServiceName{Namespace: obj.GetNamespace(), Name: obj.GetName()}) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	}
	if s, ok := obj.(*corev1.Service); ok {
		for _, p := range r.poolsOfLoadBalancer(s) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// serviceChanged passes the removal of the Service finalizer, because a deleted BackendPool waits
// for it.
func serviceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Service)
		after, ok2 := u.ObjectNew.(*corev1.Service)
		return ok1 && ok2 && (before.UID != after.UID || before.Spec.Type != after.Spec.Type ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || cache.DryRun(before) != cache.DryRun(after) ||
			cache.HasFinalizer(before) && !cache.HasFinalizer(after))
	}}
}
