// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Cluster is the cluster to plan. It decides like the controller; objects it creates and deletes
// are in memory.
type Cluster interface {
	// PlaceNodes assigns nodes to load balancers if there are several.
	PlaceNodes(ctx context.Context) error
	// Services returns the Services that have, or should have, a load balancer by Weir, sorted by
	// name.
	Services() []Service
	// NotServed returns why Weir does not serve a Service.
	NotServed(namespace, name string) error
	// Ask returns the request for a Service. A request with an empty Service means that Azure holds
	// nothing for it and it wants nothing. refused is a message for the user; err is a failed read.
	Ask(ctx context.Context, service string) (req balancer.Request, refused string, err error)
	// Settle creates and deletes BackendPools like the controller after a request.
	Settle(ctx context.Context, r balancer.Result) error
	// Pools returns the pools of all BackendPools with known members, sorted by name.
	Pools() []Pool
	// Desired returns the desired state and the record of a BackendPool's pool; see
	// poolupdate.Cluster.
	Desired(ref poolschedule.Ref) (poolwrite.Desired, error)
}

// Service is one that has, or should have, a load balancer by Weir.
type Service struct {
	Namespace, Name string
	// Owner is the prefix of the names of its resources in Azure.
	Owner string
	// Kept is why its resources are kept although it is not served, Held why they are not changed;
	// empty if not.
	Kept, Held string
	// NoEffect names source restrictions without effect, and why.
	NoEffect string
}

// Key returns namespace/name.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// Pool is the pool of a BackendPool that exists, or would if Weir ran.
type Pool struct {
	BackendPool string
	ID          lb.PoolID
	// Service is the Service whose endpoints are the members; empty for a pool of nodes.
	Service string
	Ref     poolschedule.Ref
	// Interfaces is true if the members are network interfaces.
	Interfaces bool
	// Left is why the pool is left unchanged, or empty.
	Left string
}

// Scope limits a plan; empty fields match everything.
type Scope struct{ Namespace, Service string }

// Has reports whether a Service is in scope.
func (s Scope) Has(namespace, name string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && (s.Service == "" || s.Service == name)
}
