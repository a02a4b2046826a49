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

// Cluster is a controller over objects in memory, which its writes change.
type Cluster struct {
	// Rooms are the controllers. Enable load balancers before adding objects.
	Rooms *kube.Rooms
}

// New returns an empty Cluster.
func New(opts kube.Options) *Cluster {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Cluster{kube.Connect(opts, events.New(view.Scheme(), nil, opts.Log), nil, services.API{})}
}

// Fill adds the objects.
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

// AllowUnseen is for partial clusters: namespaces without an object may bind everything, and pools
// with unknown members are skipped.
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

// LoadBalancers returns a balancer.Cluster that uses the statuses in memory.
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
