// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// LoadBalancers describes the load balancers Weir manages.
type LoadBalancers interface {
	// Names returns all load balancers of the cluster.
	Names() []string
	ID(name string) lb.LoadBalancerID
	// LeftToOthers reports whether Weir created the pool and left it because of foreign members.
	LeftToOthers(pool lb.PoolKey) bool
}

// Pools decides the ownership of pools.
type Pools struct {
	View     *cache.Snapshot
	Statuses *backendpool.Statuses
	// LoadBalancers is nil if Weir manages no load balancers.
	LoadBalancers LoadBalancers
	// Namespace holds the BackendPools of all nodes; Settings names their pools.
	Namespace string
	Settings  service.Settings
	// Configurations lists the configurations of several load balancers.
	Configurations []service.Configuration
	// ObservedState returns what this process has seen in Azure of a Service.
	ObservedState func(service, uid string) *servicelb.ObservedPools
	// AllowUnknown allows everything to namespaces without an object.
	AllowUnknown bool
}
