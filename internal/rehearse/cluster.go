// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Cluster is one that is only planned: it decides as the controller does, and what it makes and
// deletes are objects in memory.
type Cluster interface {
	// PlaceNodes finds out on which load balancer each node belongs, where there are several.
	PlaceNodes(ctx context.Context) error
	// Services are those that have a load balancer of Weir's, or are to have one, by name.
	Services() []Service
	// NotServed says why a Service is none of them.
	NotServed(namespace, name string) error
	// Ask returns what is asked for one of Services. A request without a Service is for one of
	// which Azure holds nothing, and which wants nothing. Why it is refused is for people; an
	// error is that of a read.
	Ask(ctx context.Context, service string) (req balancer.Request, refused string, err error)
	// Settle makes and deletes BackendPools as the controller does when a request is done.
	Settle(ctx context.Context, r balancer.Result) error
	// Pools are those of all BackendPools whose members are known, by name.
	Pools() []Pool
	// Desired is what the pool of a BackendPool has to hold, and what is on record of it; see
	// poolupdate.Cluster.
	Desired(ref poolschedule.Ref) (poolwrite.Desired, error)
}

// Service is one that has a load balancer of Weir's, or is to have one.
type Service struct {
	Namespace, Name string
	// Owner is the first part of the names of all that is the Service's in Azure.
	Owner string
	// Kept says why all that it has stays as it is, though it is not served, and Held why
	// nothing is changed for it; empty if neither.
	Kept, Held string
	// NoEffect names restrictions that keep nobody out, and says why.
	NoEffect string
}

// Key is the namespace and name of a Service, with a slash.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// Pool is a pool that a BackendPool stands for, or would if Weir ran.
type Pool struct {
	BackendPool string
	ID          lb.PoolID
	// Service is whose endpoints are the members; empty for a pool of nodes.
	Service string
	Ref     poolschedule.Ref
	// Interfaces is true if its members are network interfaces.
	Interfaces bool
	// Left says why the pool is left as it is; empty if it has to hold its members.
	Left string
}

// Scope is what a plan is limited to; empty is all.
type Scope struct{ Namespace, Service string }

// Has reports whether a Service is planned.
func (s Scope) Has(namespace, name string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && (s.Service == "" || s.Service == name)
}
