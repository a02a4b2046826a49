// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/k8s"
)

func (r *Reconciler) reconcilePool(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	next, err := r.Reconcile(ctx, req.Namespace, req.Name, time.Now())
	return k8s.ReconcileResult(ctx, err, next.After)
}

// hasPermission reports whether a BackendPool may use its pool.
func (r *Reconciler) hasPermission(p *v1alpha1.BackendPool) bool {
	id, err := r.view.Target(p)
	if err != nil {
		return false
	}
	right, _ := r.Owner.Permission(p, id)
	return right != backendpool.NoPermission
}

// poolAndAffected maps a BackendPool to itself, and if it may use or has used its pool, to all with the same pool.
func (r *Reconciler) poolAndAffected(ctx context.Context, obj client.Object) []reconcile.Request {
	if p, ok := obj.(*v1alpha1.BackendPool); ok && !r.Statuses.HasRecord(p) && !r.hasPermission(p) {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}
	return r.poolAndConflicting(ctx, obj)
}

// poolAndConflicting maps a BackendPool to all with the same pool, because their ownership may change.
func (r *Reconciler) poolAndConflicting(_ context.Context, obj client.Object) []reconcile.Request {
	requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	p, ok := obj.(*v1alpha1.BackendPool)
	if !ok {
		return requests
	}
	if id, err := r.view.Target(p); err == nil {
		for _, rival := range r.view.PoolsAt(id.Key()) {
			if rival.Name != p.Name || rival.Namespace != p.Namespace {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rival)})
			}
		}
	}
	return requests
}

// poolChanged drops status updates and annotation updates except RetryNow.
func poolChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, after := u.ObjectOld, u.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
			before.GetAnnotations()[v1alpha1.RetryNowAnnotation] != after.GetAnnotations()[v1alpha1.RetryNowAnnotation]
	}}
}
