// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"log/slog"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// Config configures attempts.
type Config struct {
	// Interval bounds the wait for another client's write.
	Interval time.Duration
	// AdminState enables management of admin states.
	AdminState bool
	// Behaviour is what is known of Azure.
	Behaviour behavior.Behavior
	Azure     Azure
	// LoadBalancers rewrites Failed load balancers unchanged; nil is never.
	LoadBalancers LoadBalancers
	Cluster       Cluster
	StatusStore   StatusStore
	// Members writes the members of pools of network interfaces; nil leaves them unchanged.
	Members Members
	Log     *slog.Logger
}

// Azure reads and writes backend pools. Its errors carry a *armerror.Fault.
type Azure interface {
	GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error)
	// PutPool writes a pool that was read, with other Addresses, or admin states of network interfaces,
	// guarded by its Etag, and returns it as shown on completion.
	PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	// ResolveMachines returns a pool of network interfaces with the Machine of each.
	ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// LoadBalancers reads and writes load balancers. Its errors carry a *armerror.Fault. Safe for concurrent
// use.
type LoadBalancers interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	// PutLoadBalancer writes a load balancer from GetLoadBalancer with other Addresses in its
	// Pools, guarded by its Etag, and returns it as shown on completion.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
}

// Cluster reads the newest snapshot and never blocks.
type Cluster interface {
	// DesiredPool returns the desired state of a BackendPool's pool, or an error if it is not known
	// yet.
	DesiredPool(ref schedule.Ref) (diff.Desired, error)
}

// StatusStore durably records which addresses Weir wrote, and which it set Down, so that a crash orphans
// none. It is called under the worker's lock.
type StatusStore interface {
	// Record replaces a pool's record before a write.
	Record(ctx context.Context, ref schedule.Ref, intent diff.Intent) error
}

// Members writes machines, with one worker per machine. It does not block.
type Members interface {
	// SetTarget replaces a pool's desired machines and returns their state. A failure is returned once,
	// and retried with the next call.
	SetTarget(pool nic.Target) nic.State
}
