// SPDX-License-Identifier: Apache-2.0

package controllers

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

	"weir.dev/weir/internal/controllers/backendpools"
	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// Options configure the Kubernetes side.
type Options struct {
	// SubscriptionID and ResourceGroup are the defaults for BackendPools.
	SubscriptionID, ResourceGroup string
	// ExcludeControlPlane keeps control-plane nodes out of every pool.
	ExcludeControlPlane bool
	// Log defaults to slog.Default.
	Log *slog.Logger

	// RecheckInterval is when a pool that was missing or held network interfaces is read again;
	// default 5 minutes.
	RecheckInterval time.Duration
	// ReleaseRetryInterval is the retry interval for removing managed addresses; default 1 minute.
	ReleaseRetryInterval time.Duration
	// Connection is the API server connection; a reconnect triggers pending status writes.
	Connection *k8s.Connection
	// Requeue is the back-off of the work queues; zero means the default.
	Requeue k8s.QueueBackoff
	// Draining detects leaving nodes; nil disables node taints and their events.
	Draining *lb.DrainSignals
}

func (o Options) staleCheck() func(now time.Time) bool {
	if o.Connection == nil {
		return nil
	}
	return o.Connection.Watches.IsStale
}

// Workers run pool operations, one worker per load balancer.
type Workers interface {
	// Run blocks until ctx is done and the last attempt has ended.
	Run(ctx context.Context)
	Add(ops ...schedule.Operation)
	RemoveService(name schedule.ServiceName) int
	Drop(ref schedule.Ref)
	Retry(ref schedule.Ref)
	Resume()
	Forget(pool lb.PoolID)
	IsInSync(pool lb.PoolID, fingerprint uint64) bool
}

// Cluster is the Kubernetes side of Weir. Synced is safe for concurrent use.
type Cluster struct {
	*Controllers
	opts      Options
	mgr       manager.Manager
	events    *k8s.EventQueue
	evictions *nodes.Evictions // nil if node taints are disabled
	workers   Workers
	runFirst  func(ctx context.Context)
	retries   []func(now time.Time)
	synced    []toolscache.InformerSynced
}

// New registers the informers with the manager, which must use cache.Options and metadata.Scheme.
func New(ctx context.Context, mgr manager.Manager, opts Options) (*Cluster, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.RecheckInterval == 0 {
		opts.RecheckInterval = 5 * time.Minute
	}
	if opts.ReleaseRetryInterval == 0 {
		opts.ReleaseRetryInterval = time.Minute
	}
	if opts.Requeue == (k8s.QueueBackoff{}) {
		opts.Requeue = k8s.DefaultQueueBackoff()
	}
	if err := opts.Requeue.Validate(); err != nil {
		return nil, fmt.Errorf("back-off of the work queues: %w", err)
	}
	core, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	c := &Cluster{opts: opts, mgr: mgr, events: k8s.NewEventQueue(mgr.GetScheme(), core.Events(""), opts.Log)}
	reader, writer := mgr.GetAPIReader(), mgr.GetClient()
	c.Controllers = NewControllers(opts, c.events, backendpools.API{Reader: reader, Status: writer.Status(), Writer: writer},
		services.API{Reader: reader, Cached: mgr.GetCache(), Writer: writer, Status: writer.Status()})
	for _, k := range c.View.Kinds() {
		if err := c.addInformer(ctx, k.Object, k.Store, k.Indexers); err != nil {
			return nil, err
		}
	}
	if opts.Draining != nil {
		c.evictions = &nodes.Evictions{
			Nodes: c.View, Signals: opts.Draining, Reader: reader, Writer: writer, Events: c.events, Log: opts.Log,
		}
		return c, errors.Join(c.Draining.WatchNodes(ctx, mgr.GetCache()), c.evictions.WatchEvents(core.RESTClient()))
	}
	return c, nil
}

func (c *Cluster) addInformer(ctx context.Context, object client.Object, store *toolscache.Indexer, indexers toolscache.Indexers) error {
	informer, err := c.mgr.GetCache().GetInformer(ctx, object)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server does not know %T: apply the CRDs in config/crd first: %w", object, err)
	}
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("watching %T: the cache is restricted to some namespaces, and Weir needs all: use cache.Options", object)
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

// SetFirst sets a function that runs before any write to Azure. Call it before Setup.
func (c *Cluster) SetFirst(run func(ctx context.Context)) { c.runFirst = run }

// AddRetry adds a function that retries what failed because of the API server, once it responds. Call it before Setup.
func (c *Cluster) AddRetry(retry func(now time.Time)) { c.retries = append(c.retries, retry) }

// Setup adds the controllers, the workers, the additional functions, and the event writer.
func (c *Cluster) Setup(workers Workers, runnables ...func(context.Context)) error {
	c.workers, c.Pools.Workers = workers, workers
	if c.opts.Connection != nil {
		c.opts.Connection.SetCallbacks(c.onReconnected, c.onHealthy)
	}
	runs := append([]func(context.Context){workers.Run}, runnables...)
	if c.opts.Connection != nil {
		runs = append(runs, c.releaseRetained)
	}
	if c.Services.HasLoadBalancers() {
		runs = append(runs, c.Services.Run, c.Services.RunOrphanSearch)
		if err := c.Services.Setup(c.mgr); err != nil {
			return fmt.Errorf("controller of load balancers: %w", err)
		}
		if err := c.Placement.Setup(c.mgr, c.opts.Requeue); err != nil {
			return fmt.Errorf("controller of the places of nodes: %w", err)
		}
	}
	last := func() {}
	if c.AdminStates != nil {
		runs, last = append(runs, c.AdminStates.Run), c.AdminStates.RecordEvents
	} else {
		runs = append(runs, func(ctx context.Context) { nodes.ReportStaleDown(ctx, c.View, c.events, c.opts.Log) })
	}
	if err := c.mgr.Add(k8s.EventRunnable{First: c.runFirst, Runs: runs, Last: last, Events: c.events}); err != nil {
		return err
	}
	if c.evictions != nil {
		if err := c.evictions.Setup(c.mgr, c.opts.Requeue); err != nil {
			return fmt.Errorf("controller of announced evictions: %w", err)
		}
	}
	return c.Pools.Setup(c.mgr, c.opts.Requeue)
}

// onReconnected retries pending writes without waiting for their back-off.
func (c *Cluster) onReconnected() {
	c.Pools.RetryStatuses()
	time.AfterFunc(relistDelay, c.workers.Resume)
}

// relistDelay delays the workers until the informers have listed: the caches are inconsistent before.
const relistDelay = time.Second

const watchPollInterval = time.Second

// releaseRetained requeues pools with retained members once the watches are in sync, or broken for too
// long.
func (c *Cluster) releaseRetained(ctx context.Context) {
	wasStale := false
	for ratelimit.Sleep(ctx, watchPollInterval) == nil {
		now := time.Now()
		isStale := c.opts.Connection.Watches.IsStale(now)
		switch count := c.Pools.Retention.CountHeld(); {
		case isStale && !wasStale:
			c.opts.Log.WarnContext(ctx, "a watch of the API server is broken, so what is known of endpoints and nodes may be old: no member leaves its pool until the watches are in sync again; members join, and admin states change", "atMost", k8s.StaleWatchTimeout.String())
		case !isStale && (wasStale || count > 0): // a break may fall between two polls
			c.opts.Log.InfoContext(ctx, "members leave their pools again", "held", count, "watchesOpen", c.opts.Connection.Watches.AllOpen())
			c.Pools.ReleaseRetained(now)
		}
		wasStale = isStale
	}
}

func (c *Cluster) onHealthy() {
	now := time.Now()
	c.Pools.RetryFailed(now)
	c.Services.RetryFailed(now)
	if c.evictions != nil {
		c.evictions.RetryFailed(now)
	}
	for _, retry := range c.retries {
		retry(now)
	}
	c.Placement.RetryFailed(now)
}
