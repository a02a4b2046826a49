// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// Cluster is the planned cluster. It decides like the controller; new objects are in memory.
type Cluster interface {
	// PlaceNodes assigns nodes to load balancers if there are several.
	PlaceNodes(ctx context.Context) error
	// Services returns those with a current or future load balancer by Weir, sorted by name.
	Services() []Service
	// UnmanagedReason returns why Weir does not serve a Service.
	UnmanagedReason(namespace, name string) error
	// BuildRequest returns a Service's request; with an empty Service there is nothing to do. refused is a
	// message, err a failed read.
	BuildRequest(ctx context.Context, service string) (req loadbalancer.Request, refused string, err error)
	// ResolveResult creates and deletes BackendPools like the controller.
	ResolveResult(ctx context.Context, r loadbalancer.Result) error
	// Pools returns those with known members, sorted by BackendPool.
	Pools() []Pool
	// DesiredPool implements updater.Cluster.
	DesiredPool(ref schedule.Ref) (diff.Desired, error)
}

// Service has, or should have, a load balancer by Weir.
type Service struct {
	Namespace, Name string
	// Owner is the prefix of its Azure resource names.
	Owner string
	// Why resources of an unserved Service are kept, and why nothing is changed; or empty.
	RetainedReason, BlockedReason string
	// NoEffect describes source restrictions without effect.
	NoEffect string
}

// Key returns namespace/name.
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// Pool is that of a current or future BackendPool.
type Pool struct {
	BackendPool string
	ID          lb.PoolID
	// Service is empty for a pool of nodes.
	Service    string
	Ref        schedule.Ref
	Interfaces bool
	// SkippedReason is why the pool is left unchanged, or empty.
	SkippedReason string
}

// Scope limits a plan; empty fields match all.
type Scope struct{ Namespace, Service string }

// HasService reports whether a Service is in scope.
func (s Scope) HasService(namespace, name string) bool {
	return (s.Namespace == "" || s.Namespace == namespace) && (s.Service == "" || s.Service == name)
}
