// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// Balancers name the load balancers that Weir makes.
type Balancers interface {
	// Names are those of all load balancers that are the cluster's.
	Names() []string
	ID(name string) lb.LoadBalancerID
	// LeftToOthers reports whether Weir made a pool for a Service, and left it to the addresses of others.
	LeftToOthers(pool lb.PoolKey) bool
}

// Pools says whose the pools of load balancers are.
type Pools struct {
	View     *view.Snapshot
	Statuses *backendpool.Statuses
	// Balancers are nil if Weir makes no load balancers.
	Balancers Balancers
	// Namespace is where the BackendPools of all nodes are, and Settings name their pools.
	Namespace string
	Settings  service.Settings
	// Several are the load balancers on which nodes are placed; empty where there is one.
	Several []service.Configuration
	// Served is what this process has seen in Azure of a Service, by its name and UID.
	Served func(service, uid string) *servicelb.Served
	// AllowUnseen lets namespaces bind everything of which nothing is known.
	AllowUnseen bool
}
