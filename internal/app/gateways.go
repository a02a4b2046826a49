// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

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

// addGateways adds the Gateways of the files as Services, with the rules of their routes. It returns the problems of
// Gateways and routes.
func (p *planner) addGateways(ctx context.Context) (problems []string, err error) {
	if len(p.objects.Gateways) == 0 {
		return nil, nil
	}
	list, c := slices.Clone(p.objects.Gateways), p.cluster.Controllers
	for i := range p.objects.Services {
		list = append(list, &p.objects.Services[i])
	}
	r, problems, err := gateways.ReconcileAll(ctx, gateways.Config{View: c.View, Gateways: c.View.AddGateways(), Services: c.Services}, list)
	if err != nil {
		return nil, err
	}
	c.Services.SetGateways(r)
	return problems, nil
}
