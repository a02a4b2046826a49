// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/backendpools"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/service"
)

// Controllers are the controllers, over an API server or objects in memory.
type Controllers struct {
	View      *cache.Snapshot
	Ownership *ownership.Pools
	// Pools reconciles BackendPools. Its Controller implements interfaces of packages updater
	// and attempt.
	Pools *backendpools.Reconciler
	// Services reconciles Services with a load balancer. It implements loadbalancer.Cluster.
	Services *services.Reconciler
	// Placement assigns nodes to load balancers; Draining detects draining nodes.
	Placement *nodes.Placer
	Draining  nodes.Draining
	// AdminStates emits events about admin states; nil disables them.
	AdminStates *nodes.AdminStates
}

// NewControllers creates the controllers and connects them, with the defaults of New except for Log.
func NewControllers(opts Options, queue *k8s.EventQueue, statuses backendpool.API, api services.API) *Controllers {
	r := &Controllers{View: &cache.Snapshot{
		Placement:           cache.Placement{SubscriptionID: opts.SubscriptionID, ResourceGroup: opts.ResourceGroup},
		ExcludeControlPlane: opts.ExcludeControlPlane, Draining: opts.Draining,
	}}
	r.Draining = nodes.Draining{Nodes: r.View, Signals: opts.Draining, Log: opts.Log}
	r.Placement = &nodes.Placer{Nodes: r.View, Writer: api.Writer, Events: queue, Log: opts.Log}
	r.Ownership = &ownership.Pools{View: r.View, Statuses: backendpool.NewStatuses(statuses)}
	r.Services = services.New(services.Config{
		View: r.View, Ownership: r.Ownership, API: api, Events: queue, FirstUnplaced: r.Placement.FirstUnplaced, Backoff: opts.Requeue, Log: opts.Log,
	})
	r.Placement.UpdateSelectors = r.Services.UpdateNodeSelectors
	poolsConfig := backendpools.Config{
		View: r.View, Statuses: r.Ownership.Statuses, Owner: poolOwner{r.Ownership, r.Services}, Events: queue, PoolsOfLoadBalancer: r.Ownership.PoolsForService,
		ConfigurationOf: func(name string) string { return service.ConfigurationName(name, r.Ownership.Configurations) },
		RecheckInterval: opts.RecheckInterval, ReleaseRetryInterval: opts.ReleaseRetryInterval, Stale: opts.staleCheck(), Log: opts.Log,
	}
	if opts.Draining != nil {
		r.AdminStates = nodes.NewAdminStates(r.View, r.Ownership.Statuses, queue)
		poolsConfig.AdminStates = r.AdminStates.RecordAttempt
	}
	r.Pools = backendpools.New(poolsConfig)
	if r.AdminStates != nil {
		r.AdminStates.ResolveBinding, r.AdminStates.Members = r.Pools.ResolveBinding, r.Pools.MembersOf
	}
	r.View.ExclusionReason, r.View.LoadBalancerOf, r.View.ByMachine = r.exclusionReason, r.places, r.Ownership.UsesInterfaces
	r.Services.SetPools(r.Pools)
	return r
}

// SetAPI replaces the API server clients.
func (c *Controllers) SetAPI(reader client.Reader, writer client.Writer, status client.SubResourceWriter) {
	c.Placement.Writer = writer
	c.Services.SetAPI(services.API{Reader: reader, Cached: reader, Writer: writer, Status: status})
}

// EnableLoadBalancers enables load balancers for Services. Call it before Setup.
func (c *Controllers) EnableLoadBalancers(b services.Balancers, o services.Options) {
	c.View.HealthPort = b.HealthPort
	c.Placement.SetConfigurations(o.Configurations, b.NodeConfigurations, o.AvailabilitySet)
	c.Services.EnableLoadBalancers(b, o)
}

type poolOwner struct {
	*ownership.Pools
	*services.Reconciler
}

// Contested counts conflicts with other controllers by kind, in linear time.
func (c *Controllers) Contested() map[string]int {
	return map[string]int{"Service": c.Services.CountConflicting(), "BackendPool": c.Ownership.Statuses.CountConflicting()}
}
