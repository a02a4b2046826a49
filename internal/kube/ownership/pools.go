// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// Balancers describes the load balancers Weir manages.
type Balancers interface {
	// Names returns all load balancers of the cluster.
	Names() []string
	ID(name string) lb.LoadBalancerID
	// LeftToOthers reports whether Weir created the pool and left it because of foreign members.
	LeftToOthers(pool lb.PoolKey) bool
}

// Pools decides the ownership of pools.
type Pools struct {
	View     *view.Snapshot
	Statuses *backendpool.Statuses
	// Balancers is nil if Weir manages no load balancers.
	Balancers Balancers
	// Namespace holds the BackendPools of all nodes; Settings names their pools.
	Namespace string
	Settings  service.Settings
	// Several lists the configurations of several load balancers.
	Several []service.Configuration
	// Served returns what this process has seen in Azure of a Service.
	Served func(service, uid string) *servicelb.Served
	// AllowUnseen allows everything to namespaces without an object.
	AllowUnseen bool
}
