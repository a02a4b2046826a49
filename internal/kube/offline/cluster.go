// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"log/slog"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Cluster is that of a controller, without an API server: it works on objects in memory, and what
// it writes changes these. What it decides is what a controller that runs would.
type Cluster struct {
	// Rooms are those of the controller. Balance has them serve Services, before Fill.
	Rooms *kube.Rooms
}

// New returns one for load balancers that are rehearsed. Of the options, those of the work queues
// are not used.
func New(opts kube.Options) *Cluster {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Cluster{kube.Connect(opts, events.New(view.Scheme(), nil, opts.Log), nil, services.API{})}
}

// Fill gives the cluster its objects, after Balance.
func (c *Cluster) Fill(objects Objects) error {
	c.Rooms.View.InMemory()
	all := newMemory(c.Rooms.View)
	c.Rooms.Work(all, all, statuses{memory: all})
	var failed []error
	for i := range objects.Slices {
		failed = append(failed, c.Rooms.View.Add(&objects.Slices[i]))
	}
	for i := range objects.Services {
		failed = append(failed, c.Rooms.View.Add(&objects.Services[i]))
	}
	for i := range objects.Nodes {
		failed = append(failed, c.Rooms.View.Add(&objects.Nodes[i]))
	}
	for i := range objects.Pools {
		failed = append(failed, c.Rooms.View.Add(&objects.Pools[i]))
	}
	for i := range objects.Namespaces {
		failed = append(failed, c.Rooms.View.Add(&objects.Namespaces[i]))
	}
	return errors.Join(failed...)
}

// AllowUnseen is for objects that are not all of a cluster: namespaces may bind everything whose
// Namespace is not among them, and pools whose members they do not tell are left out.
func (c *Cluster) AllowUnseen() { c.Rooms.Own.AllowUnseen = true }

// PlaceNodes implements rehearse.Cluster.
func (c *Cluster) PlaceNodes(ctx context.Context) error { return c.Rooms.Placing.All(ctx) }

// Settle implements rehearse.Cluster.
func (c *Cluster) Settle(ctx context.Context, r balancer.Result) error {
	return c.Rooms.Services.WriteDown(ctx, r)
}

// Desired implements rehearse.Cluster.
func (c *Cluster) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	return c.Rooms.Pools.Desired(ref)
}

// LoadBalancers implements balancer.Cluster, with the statuses that are in memory.
func (c *Cluster) LoadBalancers() balancer.Cluster { return loadBalancers{c.Rooms.Services, c} }

type loadBalancers struct {
	*services.Reconciler
	of *Cluster
}

// Foreign implements balancer.Cluster.
func (l loadBalancers) Foreign(ctx context.Context, pool lb.Pool) ([]string, error) {
	for _, p := range l.of.Rooms.View.PoolsAt(pool.ID.Key()) {
		l.of.Rooms.Own.Statuses.Adopt(p)
	}
	return l.Reconciler.Foreign(ctx, pool)
}
