// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/nodes"
	"weir.dev/weir/internal/kube/pools"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/removal"
	"weir.dev/weir/internal/sleep"
)

// Options configure the Kubernetes side.
type Options struct {
	// SubscriptionID and ResourceGroup are the defaults for BackendPools.
	SubscriptionID, ResourceGroup string
	// ExcludeControlPlane keeps control-plane nodes out of every pool.
	ExcludeControlPlane bool
	// Log defaults to slog.Default.
	Log *slog.Logger

	// RecheckAfter is when a pool that was missing or held network interfaces is read again;
	// default 5 minutes.
	RecheckAfter time.Duration
	// ReleaseAgainAfter is the retry interval for removing managed addresses; default 1 minute.
	ReleaseAgainAfter time.Duration
	// Reach is the API server connection; a reconnect triggers pending status writes.
	Reach *apiserver.Reach
	// Requeue is the back-off of the work queues; zero means the default.
	Requeue workqueue.Backoff
	// Draining detects leaving nodes; nil disables node taints and their events.
	Draining *adminstate.Signals
}

func (o Options) stale() func(now time.Time) bool {
	if o.Reach == nil {
		return nil
	}
	return o.Reach.Watches.Stale
}

// Lanes run pool operations, one worker per load balancer.
type Lanes interface {
	// Run blocks until ctx is done and the last attempt has ended.
	Run(ctx context.Context)
	Add(ops ...poolschedule.Operation)
	RemoveService(name poolschedule.ServiceName) int
	Drop(ref poolschedule.Ref)
	Retry(ref poolschedule.Ref)
	Resume()
	Forget(pool lb.PoolID)
	LevelAs(pool lb.PoolID, fingerprint uint64) bool
}

// Cluster is the Kubernetes side of Weir. Synced is safe for concurrent use.
type Cluster struct {
	*Rooms
	opts      Options
	mgr       manager.Manager
	events    *events.Queue
	evictions *nodes.Evictions // nil if node taints are disabled
	lanes     Lanes
	first     func(ctx context.Context)
	synced    []toolscache.InformerSynced
}

// New registers the informers with the manager, which must use CacheOptions and Scheme.
func New(ctx context.Context, mgr manager.Manager, opts Options) (*Cluster, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.RecheckAfter == 0 {
		opts.RecheckAfter = 5 * time.Minute
	}
	if opts.ReleaseAgainAfter == 0 {
		opts.ReleaseAgainAfter = time.Minute
	}
	if opts.Requeue == (workqueue.Backoff{}) {
		opts.Requeue = workqueue.DefaultBackoff()
	}
	if err := opts.Requeue.Validate(); err != nil {
		return nil, fmt.Errorf("back-off of the work queues: %w", err)
	}
	core, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	c := &Cluster{opts: opts, mgr: mgr, events: events.New(mgr.GetScheme(), core.Events(""), opts.Log)}
	reader, writer := mgr.GetAPIReader(), mgr.GetClient()
	c.Rooms = Connect(opts, c.events, pools.API{Reader: reader, Status: writer.Status(), Writer: writer},
		services.API{Reader: reader, Cached: mgr.GetCache(), Writer: writer, Status: writer.Status()})
	for _, k := range c.View.Kinds() {
		if err := c.inform(ctx, k.Object, k.Store, k.Indexers); err != nil {
			return nil, err
		}
	}
	if opts.Draining != nil {
		c.evictions = &nodes.Evictions{
			Nodes: c.View, Signals: opts.Draining, Reader: reader, Writer: writer, Events: c.events, Log: opts.Log,
		}
		return c, errors.Join(c.Draining.Watch(ctx, mgr.GetCache()), c.evictions.Watch(core.RESTClient()))
	}
	return c, nil
}

func (c *Cluster) inform(ctx context.Context, object client.Object, store *toolscache.Indexer, indexers toolscache.Indexers) error {
	informer, err := c.mgr.GetCache().GetInformer(ctx, object)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server does not know %T: apply the CRDs in config/crd first: %w", object, err)
	}
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("watching %T: the cache is restricted to some namespaces, and Weir needs all: use CacheOptions", object)
	}
	if err := shared.AddIndexers(indexers); err != nil {
		return fmt.Errorf("indexing %T: %w", object, err)
	}
	*store = shared.GetIndexer()
	c.synced = append(c.synced, shared.HasSynced)
	return nil
}

// Synced is the readiness check: nil once all caches are synced.
func (c *Cluster) Synced(*http.Request) error {
	for _, synced := range c.synced {
		if !synced() {
			return errors.New("the caches are not filled yet")
		}
	}
	return nil
}

// First sets a function that runs before any write to Azure. Call it before Setup.
func (c *Cluster) First(run func(ctx context.Context)) { c.first = run }

// Setup adds the controllers, the workers, the additional functions, and the event writer.
func (c *Cluster) Setup(lanes Lanes, beside ...func(context.Context)) error {
	c.lanes, c.Pools.Lanes = lanes, lanes
	if c.opts.Reach != nil {
		c.opts.Reach.Notify(c.reachable, c.well)
	}
	runs := append([]func(context.Context){lanes.Run}, beside...)
	if c.opts.Reach != nil {
		runs = append(runs, c.releaseHeld)
	}
	if c.Services.Balances() {
		runs = append(runs, c.Services.Run, c.Services.FindLeftovers)
		if err := c.Services.Setup(c.mgr); err != nil {
			return fmt.Errorf("controller of load balancers: %w", err)
		}
		if err := c.Placing.Setup(c.mgr, c.opts.Requeue); err != nil {
			return fmt.Errorf("controller of the places of nodes: %w", err)
		}
	}
	last := func() {}
	if c.AdminStates != nil {
		runs, last = append(runs, c.AdminStates.Run), c.AdminStates.Tell
	} else {
		runs = append(runs, func(ctx context.Context) { nodes.TellLeftDown(ctx, c.View, c.events, c.opts.Log) })
	}
	if err := c.mgr.Add(events.Runnable{First: c.first, Runs: runs, Last: last, Events: c.events}); err != nil {
		return err
	}
	if c.evictions != nil {
		if err := c.evictions.Setup(c.mgr, c.opts.Requeue); err != nil {
			return fmt.Errorf("controller of announced evictions: %w", err)
		}
	}
	return c.Pools.Setup(c.mgr, c.opts.Requeue)
}

// reachable retries pending writes without waiting for their back-off.
func (c *Cluster) reachable() {
	c.Pools.RetryStatuses()
	time.AfterFunc(afterLists, c.lanes.Resume)
}

// afterLists delays the workers until the informers have listed: the caches are inconsistent before.
const afterLists = time.Second

const looksAtWatches = time.Second

// releaseHeld requeues pools with retained members once the watches are in sync, or broken for too
// long.
func (c *Cluster) releaseHeld(ctx context.Context) {
	wasStale := false
	for sleep.For(ctx, looksAtWatches) == nil {
		now := time.Now()
		isStale := c.opts.Reach.Watches.Stale(now)
		switch held := c.Pools.Keeper.Held(); {
		case isStale && !wasStale:
			c.opts.Log.WarnContext(ctx, "a watch of the API server is broken, so what is known of endpoints and nodes may be old: no member leaves its pool until the watches are in sync again; members join, and admin states change", "atMost", removal.StaleTimeout.String())
		case !isStale && (wasStale || held > 0): // a break may fall between two polls
			c.opts.Log.InfoContext(ctx, "members leave their pools again", "held", held, "inSync", c.opts.Reach.Watches.InSync())
			c.Pools.ReleaseHeld(now)
		}
		wasStale = isStale
	}
}

func (c *Cluster) well() {
	now := time.Now()
	c.Pools.Retry(now)
	c.Services.Retry(now)
	if c.evictions != nil {
		c.evictions.Retry(now)
	}
	c.Placing.Retry(now)
}
