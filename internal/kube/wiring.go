// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/nodes"
	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/pools"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/service"
)

// Rooms are the controllers, over an API server or objects in memory.
type Rooms struct {
	View *view.Snapshot
	Own  *ownership.Pools
	// Pools reconciles BackendPools. Its Controller implements interfaces of poolupdate and
	// poolattempt.
	Pools *pools.Reconciler
	// Services reconciles Services with a load balancer. It implements balancer.Cluster.
	Services *services.Reconciler
	// Placing assigns nodes to load balancers; Draining detects draining nodes.
	Placing  *nodes.Placing
	Draining nodes.Draining
	// AdminStates emits events about admin states; nil disables them.
	AdminStates *nodes.AdminStates
}

// Connect creates the controllers and connects them, with the defaults of New except for Log.
func Connect(opts Options, queue *events.Queue, statuses backendpool.API, api services.API) *Rooms {
	r := &Rooms{View: &view.Snapshot{
		Placement:           view.Placement{SubscriptionID: opts.SubscriptionID, ResourceGroup: opts.ResourceGroup},
		ExcludeControlPlane: opts.ExcludeControlPlane, Draining: opts.Draining,
	}}
	r.Draining = nodes.Draining{Nodes: r.View, Signals: opts.Draining, Log: opts.Log}
	r.Placing = &nodes.Placing{Nodes: r.View, Writer: api.Writer, Events: queue, Log: opts.Log}
	r.Own = &ownership.Pools{View: r.View, Statuses: backendpool.NewStatuses(statuses)}
	r.Services = services.New(services.Config{
		View: r.View, Own: r.Own, API: api, Events: queue, NotPlaced: r.Placing.Missing, Backoff: opts.Requeue, Log: opts.Log,
	})
	r.Placing.Selected = r.Services.SelectPlaced
	poolsConfig := pools.Config{
		View: r.View, Statuses: r.Own.Statuses, Owner: poolOwner{r.Own, r.Services}, Events: queue, OfLoadBalancer: r.Own.PoolsAtOf,
		ConfigurationOf: func(name string) string { return service.ConfigurationName(name, r.Own.Several) },
		RecheckAfter:    opts.RecheckAfter, ReleaseAgainAfter: opts.ReleaseAgainAfter, Stale: opts.stale(), Log: opts.Log,
	}
	if opts.Draining != nil {
		r.AdminStates = nodes.NewAdminStates(r.View, r.Own.Statuses, queue)
		poolsConfig.AdminStates = r.AdminStates.Hear
	}
	r.Pools = pools.New(poolsConfig)
	if r.AdminStates != nil {
		r.AdminStates.Entitlement, r.AdminStates.Members = r.Pools.Entitlement, r.Pools.MembersOf
	}
	r.View.Elsewhere, r.View.Places, r.View.ByMachine = r.elsewhere, r.places, r.Own.ByMachine
	r.Services.Connect(r.Pools)
	return r
}

// Work replaces the API server clients.
func (r *Rooms) Work(reader client.Reader, writer client.Writer, status client.SubResourceWriter) {
	r.Placing.Writer = writer
	r.Services.Work(services.API{Reader: reader, Cached: reader, Writer: writer, Status: status})
}

// Balance enables load balancers for Services. Call it before Setup.
func (r *Rooms) Balance(b services.Balancers, o services.Options) {
	r.Placing.Among(o.Several, b.NodePlaces, o.AvailabilitySet)
	r.Services.Balance(b, o)
}

type poolOwner struct {
	*ownership.Pools
	*services.Reconciler
}

// Contested counts conflicts with other controllers by kind, in linear time.
func (r *Rooms) Contested() map[string]int {
	return map[string]int{"Service": r.Services.Contested(), "BackendPool": r.Own.Statuses.Contested()}
}
