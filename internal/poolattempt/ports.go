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

// Config is what an attempt works with.
type Config struct {
	// Interval is how long the second try waits for somebody else's write.
	Interval time.Duration
	// AdminState has addresses be Down that the cluster wants so.
	AdminState bool
	// Behaviour is what is known of Azure.
	Behaviour behaviour.Behaviour
	Azure     Azure
	// Whole writes a load balancer that is Failed as it is; nil is never.
	Whole   Balancers
	Cluster Cluster
	Ledger  Ledger
	// Members writes the members of pools of network interfaces; nil leaves these as they are.
	Members Members
	Log     *slog.Logger
}

// Azure reads and writes backend pools. Its errors carry a *fault.Fault.
type Azure interface {
	// Get reads a pool.
	Get(ctx context.Context, id lb.PoolID) (lb.Pool, error)
	// Put writes a pool that came from Get with other Addresses, or of network
	// interfaces with other admin states, guarded by its Etag, waits until Azure is done, and returns what Azure then shows.
	Put(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	// Machines returns a pool of network interfaces with the Machine of each.
	Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// Balancers reads and writes load balancers with all their pools. Its errors carry a
// *fault.Fault. It is called from several lanes at once.
type Balancers interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	// PutLoadBalancer writes a load balancer that came from GetLoadBalancer with other
	// Addresses in its Pools, guarded by its Etag, waits until Azure is done, and returns
	// what Azure then shows.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	// Desired returns what the pool of a BackendPool has to hold now. An error says why that
	// is not known yet: nothing is written then.
	Desired(ref poolschedule.Ref) (poolwrite.Desired, error)
}

// Ledger keeps which addresses of a pool Weir wrote, and which of them it set Down, durably,
// so that a crash leaves no orphan. It is called under the lane's lock of the pool.
type Ledger interface {
	// Record replaces what is recorded, and says what is about to be written.
	Record(ctx context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error
}

// Members writes what makes machines members of pools of network interfaces, each machine in a lane
// of its own. It waits for nobody.
type Members interface {
	// Bring hands over what a pool has to become, in place of what was handed over before, and says
	// what is known of its machines. One that has failed is said once, and tried again when the pool
	// is handed over the next time.
	Bring(pool nic.Target) nic.State
}
