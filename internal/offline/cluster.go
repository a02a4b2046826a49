// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"log/slog"

	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// Cluster is a controller over objects in memory, which its writes change.
type Cluster struct {
	// Controllers are the controllers. Enable load balancers before adding objects.
	Controllers *controllers.Controllers
}

// New returns an empty Cluster.
func New(opts controllers.Options) *Cluster {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Cluster{controllers.NewControllers(opts, k8s.NewEventQueue(metadata.Scheme(), nil, opts.Log), nil, services.API{})}
}

// AddObjects adds the objects.
func (c *Cluster) AddObjects(objects Objects) error {
	c.Controllers.View.InMemory()
	memory := newMemory(c.Controllers.View)
	c.Controllers.SetAPI(memory, memory, statusWriter{memory: memory})
	var failed []error
	for i := range objects.Slices {
		failed = append(failed, c.Controllers.View.Add(&objects.Slices[i]))
	}
	for i := range objects.Services {
		failed = append(failed, c.Controllers.View.Add(&objects.Services[i]))
	}
	for i := range objects.Nodes {
		failed = append(failed, c.Controllers.View.Add(&objects.Nodes[i]))
	}
	for i := range objects.Pools {
		failed = append(failed, c.Controllers.View.Add(&objects.Pools[i]))
	}
	for i := range objects.Namespaces {
		failed = append(failed, c.Controllers.View.Add(&objects.Namespaces[i]))
	}
	return errors.Join(failed...)
}

// AllowUnknown is for partial clusters: namespaces without an object may bind everything, and pools
// with unknown members are skipped.
func (c *Cluster) AllowUnknown() { c.Controllers.Ownership.AllowUnknown = true }

// PlaceNodes implements dryrun.Cluster.
func (c *Cluster) PlaceNodes(ctx context.Context) error { return c.Controllers.Placement.PlaceAll(ctx) }

// ResolveResult implements dryrun.Cluster.
func (c *Cluster) ResolveResult(ctx context.Context, r loadbalancer.Result) error {
	return c.Controllers.Services.PersistResult(ctx, r)
}

// DesiredPool implements dryrun.Cluster.
func (c *Cluster) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	return c.Controllers.Pools.DesiredPool(ref)
}

// LoadBalancers returns a loadbalancer.Cluster that uses the statuses in memory.
func (c *Cluster) LoadBalancers() loadbalancer.Cluster {
	return loadBalancers{c.Controllers.Services, c}
}

type loadBalancers struct {
	*services.Reconciler
	of *Cluster
}

// ForeignMembers implements loadbalancer.Cluster.
func (l loadBalancers) ForeignMembers(ctx context.Context, pool lb.Pool) ([]string, error) {
	for _, p := range l.of.Controllers.View.PoolsAt(pool.ID.Key()) {
		l.of.Controllers.Ownership.Statuses.AdoptPool(p)
	}
	return l.Reconciler.ForeignMembers(ctx, pool)
}
