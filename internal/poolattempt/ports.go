// SPDX-License-Identifier: Apache-2.0

package poolattempt

import (
	"context"
	"log/slog"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Config configures attempts.
type Config struct {
	// Interval bounds how long a second try waits for another client's write.
	Interval time.Duration
	// AdminState manages the admin states of addresses.
	AdminState bool
	// Behaviour is what is known of Azure.
	Behaviour behaviour.Behaviour
	Azure     Azure
	// Whole repairs load balancers in state Failed by writing them unchanged; nil is never.
	Whole   Balancers
	Cluster Cluster
	Ledger  Ledger
	// Members writes the members of pools of network interfaces; nil leaves them unchanged.
	Members Members
	Log     *slog.Logger
}

// Azure reads and writes backend pools. Its errors carry a *fault.Fault.
type Azure interface {
	// Get reads a pool.
	Get(ctx context.Context, id lb.PoolID) (lb.Pool, error)
	// Put writes a pool from Get with changed Addresses, or changed admin states of network
	// interfaces, guarded by its Etag. It waits for completion and returns what Azure then shows.
	Put(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	// Machines returns a pool of network interfaces with the Machine of each.
	Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// Balancers reads and writes load balancers with all their pools. Its errors carry a *fault.Fault.
// Safe for concurrent use.
type Balancers interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	// PutLoadBalancer writes a load balancer from GetLoadBalancer with changed Addresses in its
	// Pools, guarded by its Etag. It waits for completion and returns what Azure then shows.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
}

// Cluster reads the newest snapshot of the cluster and never blocks.
type Cluster interface {
	// Desired returns the desired state of a BackendPool's pool. An error means that it is not
	// known yet: nothing is written.
	Desired(ref poolschedule.Ref) (poolwrite.Desired, error)
}

// Ledger durably records which addresses Weir wrote to a pool and which of them it set Down, so
// that a crash orphans none. It is called under the worker's lock.
type Ledger interface {
	// Record replaces the record with what is about to be written.
	Record(ctx context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error
}

// Members writes the pool memberships of machines, with one worker per machine. It does not block.
type Members interface {
	// Bring replaces the target of a pool and returns the state of its machines. A failed machine
	// is returned once, and retried with the next call.
	Bring(pool nic.Target) nic.State
}
