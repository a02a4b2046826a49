// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/gateways"
)

// addGateways enables Gateway API and returns what the leader runs for it.
func addGateways(o Options, cluster *controllers.Cluster, mgr ctrl.Manager) func(context.Context) {
	if !o.GatewayAPI {
		return func(context.Context) {}
	}
	writer := mgr.GetClient()
	r := gateways.New(gateways.Config{
		View: cluster.View, Gateways: cluster.View.AddGateways(), Services: cluster.Services,
		Reader: mgr.GetAPIReader(), Writer: writer, Status: writer.Status(), Backoff: o.Requeue, Log: o.Log,
	})
	cluster.Services.SetGateways(r)
	cluster.AddRetry(r.RetryFailed)
	return func(ctx context.Context) {
		if err := r.Watch(ctx, mgr); err != nil && ctx.Err() == nil {
			o.Log.ErrorContext(ctx, "Gateways are not reconciled until weir restarts", "err", err)
		}
	}
}
