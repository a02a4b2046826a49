// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/service"
)

// poolsIn maps a namespace to its BackendPools and those with the same pools.
func (r *Reconciler) poolsIn(ctx context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range cache.List[v1alpha1.BackendPool](r.view.Pools, cache.PoolsByNamespace, obj.GetName()) {
		requests = append(requests, r.poolAndConflicting(ctx, p)...)
	}
	return requests
}

func grantChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(u event.UpdateEvent) bool {
			return u.ObjectOld.GetAnnotations()[service.LoadBalancersAnnotation] != u.ObjectNew.GetAnnotations()[service.LoadBalancersAnnotation]
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
