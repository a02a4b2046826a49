// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/servicelb"
)

// Options configure the Kubernetes side.
type Options struct {
	// SubscriptionID and ResourceGroup stand in where a BackendPool names none.
	SubscriptionID, ResourceGroup string
	// ExcludeControlPlane keeps control-plane nodes out of every pool.
	ExcludeControlPlane bool
	// Log receives the room's logs; nil is slog.Default.
	Log *slog.Logger

	// RecheckAfter is when a pool is read again that did not exist, or held network
	// interfaces; zero is 5 minutes.
	RecheckAfter time.Duration
	// ReleaseAgainAfter is when our addresses are taken out again if that failed;
	// zero is a minute.
	ReleaseAgainAfter time.Duration
	// Reach is the way to the API server that the manager's configuration was completed
	// by. Through it, statuses that could not be written are written once it is back; nil
	// leaves that to the work queue's back-off alone.
	Reach *Reach
	// Requeue is the back-off of the work queues; zero is StandardRequeue.
	Requeue Requeue
	// Draining says which nodes leave, as CacheOptions got it; nil leaves the taints of nodes
	// and the events about them alone.
	Draining *adminstate.Signals
}

// Lanes are what operations are handed to; see poolupdate.Lanes.
type Lanes interface {
	// Run works until the context is done, and returns when the last attempt has ended.
	Run(ctx context.Context)
	Add(ops ...poolupdate.Operation)
	RemoveService(name poolupdate.ServiceName) int
	Drop(ref poolupdate.Ref)
	Resume()
	Forget(pool lb.PoolID)
	LevelAs(pool lb.PoolID, fingerprint uint64) bool
}

// Cluster is the Kubernetes side. Synced may be called from any goroutine.
type Cluster struct {
	opts     Options
	mgr      manager.Manager
	snap     *snapshot
	statuses *backendpool.Statuses
	pools    *backendpool.Controller
	events   *eventQueue
	reader   client.Reader // of the API server itself
	cached   client.Reader // of the manager's cache
	writer   client.Writer
	wake     wake // the BackendPools' work queue
	services wake // the Services'
	balanced wake // the load balancers' Services'
	evicted  wake // that of the events that announce evictions
	placing  wake // the nodes', where they are placed
	// serviceLBs decides what happens next to the load balancers of Services.
	serviceLBs *servicelb.Reconciler
	places     nodePlaces
	left       leftovers
	// news gathers what becomes of admin states; nil if they are left alone.
	news *adminNews
	// preemptions are nil if the taints of nodes are left alone.
	preemptions toolscache.SharedIndexInformer
	heard       heard // of them
	// balancers are nil if Weir makes no load balancers.
	balancers Balancers
	balancing Balancing
	lanes     Lanes
	synced    []toolscache.InformerSynced
	// allowsUnseen lets namespaces bind everything of which nothing is known.
	allowsUnseen bool
}

// New registers the informers with the manager, whose cache has to have CacheOptions
// and whose scheme Scheme. It asks the API server which kinds it knows.
//
// Lanes are made with the Cluster, and handed to Setup, which has the manager run them.
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
	if opts.Requeue == (Requeue{}) {
		opts.Requeue = StandardRequeue()
	}
	if err := opts.Requeue.Validate(); err != nil {
		return nil, fmt.Errorf("back-off of the work queues: %w", err)
	}
	c := &Cluster{
		opts: opts, mgr: mgr, reader: mgr.GetAPIReader(), cached: mgr.GetCache(), writer: mgr.GetClient(),
		serviceLBs: servicelb.New(servicelb.Config{}),
		snap: &snapshot{
			place:               placement{subscriptionID: opts.SubscriptionID, resourceGroup: opts.ResourceGroup},
			excludeControlPlane: opts.ExcludeControlPlane, draining: opts.Draining,
		},
	}
	c.connectPools(poolAPI{mgr.GetAPIReader(), mgr.GetClient().Status(), mgr.GetClient()})
	for _, k := range c.kinds() {
		if err := c.inform(ctx, k.object, k.store, k.indexers); err != nil {
			return nil, err
		}
	}
	core, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	c.events = newEventQueue(mgr.GetScheme(), core.Events(""), opts.Log)
	if opts.Draining != nil {
		c.news = newAdminNews()
		return c, errors.Join(c.watchDraining(ctx), c.watchPreemptions(core.RESTClient()))
	}
	return c, nil
}

// kind is a kind of objects that is watched, and where its objects are kept.
type kind struct {
	object   client.Object
	store    *toolscache.Indexer
	indexers toolscache.Indexers
}

func (c *Cluster) kinds() []kind {
	return []kind{
		{&discoveryv1.EndpointSlice{}, &c.snap.slices, sliceIndexers()},
		{&corev1.Service{}, &c.snap.services, c.serviceIndexers()},
		{&corev1.Node{}, &c.snap.nodes, nodeIndexers()},
		{&v1alpha1.BackendPool{}, &c.snap.pools, poolIndexers(c.snap.place)},
		{&corev1.Namespace{}, &c.snap.namespaces, toolscache.Indexers{}},
	}
}

// inform starts to watch a kind once the manager runs.
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

// Synced is the readiness check: nil once all caches are filled.
func (c *Cluster) Synced(*http.Request) error {
	for _, synced := range c.synced {
		if !synced() {
			return errors.New("the caches are not filled yet")
		}
	}
	return nil
}

// Setup adds the controllers, the lanes and the writer of events to the manager.
func (c *Cluster) Setup(lanes Lanes) error {
	c.lanes, c.pools.Lanes = lanes, lanes
	if c.opts.Reach != nil {
		c.opts.Reach.tells(c.reachable, c.well)
	}
	runs := []func(context.Context){lanes.Run}
	if c.balancers != nil {
		runs = append(runs, c.balancers.Run, c.findLeftovers)
		if err := c.setupBalancing(); err != nil {
			return fmt.Errorf("controller of load balancers: %w", err)
		}
		if len(c.balancing.Several) > 0 {
			if err := c.setupPlacing(); err != nil {
				return fmt.Errorf("controller of the places of nodes: %w", err)
			}
		}
	}
	last := func() {}
	if c.news != nil {
		runs, last = append(runs, c.tellNews), c.tellAdminNews
	} else {
		runs = append(runs, c.tellLeftDown)
	}
	if err := c.mgr.Add(leading{runs, last, c.events}); err != nil {
		return err
	}
	if c.preemptions != nil {
		if err := c.setupPreemption(); err != nil {
			return fmt.Errorf("controller of announced evictions: %w", err)
		}
	}
	options := func() controller.Options {
		return controller.Options{RateLimiter: c.opts.Requeue.limiter(), NewQueue: newFairQueue}
	}
	err := builder.ControllerManagedBy(c.mgr).Named("service").
		Watches(&discoveryv1.EndpointSlice{}, mapped(c.servicesOfSlice), builder.WithPredicates(sliceChanged(), live())).
		Watches(&corev1.Service{}, mapped(c.boundService), builder.WithPredicates(serviceChanged(), live())).
		Watches(&corev1.Node{}, mapped(c.servicesOnNode), builder.WithPredicates(c.nodeChanged(), live())).
		WatchesRawSource(c.services.source()).
		WithOptions(options()).
		Complete(c.services.noting(c.reconcileService))
	if err != nil {
		return fmt.Errorf("controller of Services: %w", err)
	}
	err = builder.ControllerManagedBy(c.mgr).Named("backendpool").
		Watches(&v1alpha1.BackendPool{}, mapped(c.poolAndRivals), builder.WithPredicates(poolChanged())).
		Watches(&corev1.Service{}, mapped(c.poolsOfService), builder.WithPredicates(serviceChanged())).
		Watches(&corev1.Node{}, mapped(c.poolsOfNode), builder.WithPredicates(c.nodeOrLabelsChanged())).
		Watches(&corev1.Namespace{}, mapped(c.poolsIn), builder.WithPredicates(grantChanged())).
		WatchesRawSource(c.wake.source()).
		WithOptions(options()).
		Complete(c.wake.noting(c.reconcilePool))
	if err != nil {
		return fmt.Errorf("controller of BackendPools: %w", err)
	}
	return nil
}

// reachable has the statuses written now that could not be written before, and the pools
// that could not be recorded. Their back-off has grown with the time for which the API
// server was away.
func (c *Cluster) reachable() {
	for _, ref := range c.statuses.Unsaved() {
		c.wake.add(ref)
	}
	time.AfterFunc(afterLists, c.lanes.Resume)
}

// afterLists is how long the lanes leave the informers to list again, once the API server is
// back: each brings what it lists piece by piece, and an attempt in between would see a
// cluster that never was.
const afterLists = time.Second

// well has those tried again that failed because of the API server, which does answer.
func (c *Cluster) well() {
	now := time.Now()
	c.services.retry(now)
	c.wake.retry(now)
	c.balanced.retry(now)
	c.evicted.retry(now)
	c.placing.retry(now)
}

// mapped is the handler of all events. It queues what the initial list of objects
// brings with low priority, so that a live change goes first however long that list is.
func mapped(to handler.MapFunc) handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(to) }

// live drops what the initial list brings: it is no change, and each BackendPool is
// reconciled then for itself.
func live() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// States counts the BackendPools by the reason of their Synced condition, as kubectl
// shows it. Its cost grows with their number.
func (c *Cluster) States() map[string]int { return c.statuses.Reasons() }
