// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// ProxyProtocolNeighbor calls the Cluster method.
func ProxiedBeside(r *Reconciler, s servicelb.Service) string {
	return serviceCluster{r}.ProxyProtocolNeighbor(s)
}

// SharesAddress calls the Cluster method.
func SharesAddress(r *Reconciler, s servicelb.Service) bool {
	return serviceCluster{r}.SharesAddress(s)
}

// BalancedService maps an event of a Service.
func BalancedService(ctx context.Context, r *Reconciler, obj client.Object) []reconcile.Request {
	return r.balancedService(ctx, obj)
}

// EmptyPool calls the Cluster method.
func EmptyPool(r *Reconciler, on lb.LoadBalancerID, pools []service.Pool) string {
	return serviceCluster{r}.EmptyPool(on, pools)
}
