// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/nodes"
	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/pools"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/poolupdate"
)

// connect makes the rooms, and has each hear of the others what it has to.
func (c *Cluster) connect(statuses backendpool.API, api services.API) {
	c.own = &ownership.Pools{View: c.snap, Statuses: backendpool.NewStatuses(statuses)}
	c.services = services.New(services.Config{
		View: c.snap, Own: c.own, API: api, Events: c.events, NotPlaced: c.places.missing, Backoff: c.opts.Requeue, Log: c.opts.Log,
	})
	c.connectPools(poolOwner{c.own, c.services})
}

// connectPools makes the room of BackendPools, for whom somebody else says whose they are.
func (c *Cluster) connectPools(owner backendpool.Owner) {
	c.pools = pools.New(pools.Config{
		View: c.snap, Statuses: c.own.Statuses, Owner: owner, Events: c.events, AdminStates: c.hearAdminStates, OfLoadBalancer: c.own.PoolsAtOf,
		RecheckAfter: c.opts.RecheckAfter, ReleaseAgainAfter: c.opts.ReleaseAgainAfter, Log: c.opts.Log,
	})
	c.services.Connect(c.pools)
}

// hearAdminStates takes what an attempt at a pool says of admin states.
func (c *Cluster) hearAdminStates(p *v1alpha1.BackendPool, is backendpool.Entitlement, r poolupdate.Report, t backendpool.Turned) {
	if c.news != nil {
		c.news.hear(aboutPool(p, is), r, t)
	}
}

// poolOwner implements backendpool.Owner: whose pools are, and who of their Services hears of it.
type poolOwner struct {
	*ownership.Pools
	*services.Reconciler
}

// BackendPools decides what becomes of BackendPools. It implements poolupdate's Cluster, Ledger
// and Reporter.
func (c *Cluster) BackendPools() *backendpool.Controller { return c.pools.Controller }

// LoadBalancers is what Services have to do with load balancers. It implements balancer.Cluster.
func (c *Cluster) LoadBalancers() *services.Reconciler { return c.services }

// Balance has Setup run a controller of Services that have a load balancer.
func (c *Cluster) Balance(b services.Balancers, o services.Options) {
	c.places.several, c.places.names = o.Several, view.PlaceNames(o.Several)
	c.places.shown, c.places.availabilitySet = b.NodePlaces, o.AvailabilitySet
	c.services.Balance(b, o)
}

// Contested counts by kind what somebody else keeps undoing. Its cost grows with the number of
// BackendPools.
func (c *Cluster) Contested() map[string]int {
	return map[string]int{"Service": c.services.Contested(), "BackendPool": c.own.Statuses.Contested()}
}

// States counts the BackendPools by the reason of their Synced condition, as kubectl
// shows it. Its cost grows with their number.
func (c *Cluster) States() map[string]int { return c.own.Statuses.Reasons() }

// Draining says which nodes drain.
func (c *Cluster) Draining() nodes.Draining { return c.draining }
