// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/service"
)

// API is the API server for Services and BackendPools.
type API struct {
	Reader client.Reader // reads directly from the API server
	Cached client.Reader // reads the manager's cache
	Writer client.Writer
	Status client.SubResourceWriter
}

// Events records events and does not block.
type Events interface {
	Add(about runtime.Object, kind, reason, message string)
}

// Pools is the BackendPool reconciler; see package backendpool.
type Pools interface {
	// RequeuePool requests a reconciliation.
	RequeuePool(name types.NamespacedName)
	RecheckMissing(p *v1alpha1.BackendPool, now time.Time)
	RecordPlan(ctx context.Context, p *v1alpha1.BackendPool, text string) error
	PoolOwner(pool lb.PoolID) *v1alpha1.BackendPool
	ResolveBinding(p *v1alpha1.BackendPool, now time.Time) backendpool.Binding
	ManagedAddresses(p *v1alpha1.BackendPool) func(netip.Addr) bool
}

// Config configures a Reconciler.
type Config struct {
	View *cache.Snapshot
	// Ownership determines pool ownership. Its load balancer fields are set when load balancers are enabled.
	Ownership *ownership.Pools
	API       API
	Events    Events
	// FirstUnplaced returns the first node without a load balancer and the reason; "" if none.
	FirstUnplaced func([]*corev1.Node) (name, reason string)
	Backoff       k8s.QueueBackoff
	Log           *slog.Logger
}

// Reconciler reconciles the load balancers of Services. Package servicelb decides; the Reconciler implements
// its interfaces. It ignores Services until load balancers are enabled.
type Reconciler struct {
	holds
	sharers
	cfg       Config
	view      *cache.Snapshot
	ownership *ownership.Pools
	pools     Pools
	queue     k8s.WorkQueue
	// decisions makes the decisions for a Service.
	decisions *servicelb.Reconciler
	// deployer is nil if Weir creates no load balancers.
	deployer Balancers
	options  Options
	orphans  orphanSet
	gateways Gateways // nil without Gateway API
}

// New returns a Reconciler that ignores all Services.
func New(c Config) *Reconciler {
	r := &Reconciler{holds: holds{c.View, c.Ownership}, cfg: c, view: c.View, ownership: c.Ownership, decisions: servicelb.New(servicelb.Config{})}
	r.sharers = sharers{r}
	c.Ownership.ObservedState = func(name, uid string) *servicelb.ObservedPools { return r.decisions.States.ObservedFor(name, uid) }
	return r
}

// SetPools sets the BackendPool reconciler. Call it before Setup.
func (r *Reconciler) SetPools(pools Pools) { r.pools = pools }

// SetAPI replaces the API server.
func (r *Reconciler) SetAPI(api API) { r.cfg.API = api }

// EnableLoadBalancers enables load balancers for Services. Call it before the first Service event.
func (r *Reconciler) EnableLoadBalancers(b Balancers, o Options) {
	r.deployer, r.options = b, o
	r.ownership.LoadBalancers, r.ownership.Namespace, r.ownership.Settings, r.ownership.Configurations = b, o.Namespace, o.Settings, o.Configurations
	r.view.Serving = cache.Serving{LoadBalancers: true, Class: o.Class}
	r.decisions = servicelb.New(servicelb.Config{
		Settings: servicelb.Settings{
			Class: o.Class, AllowRemoval: o.AllowRemoval, Service: o.Settings, HasSecurityGroup: o.Guarded,
			RequireEffectiveRestrictions: o.RequireEffectiveRestrictions, ResyncPeriod: o.ResyncPeriod, Configurations: o.Configurations,
		},
		Cluster: serviceCluster{r}, Store: serviceStatusStore{r}, Events: serviceEvents{r}, DryRunner: serviceDryRun{r},
		Balancers: b, Backoff: r.cfg.Backoff.ItemBackoff(), Log: r.cfg.Log,
	})
}

// HasLoadBalancers reports whether Weir creates load balancers.
func (r *Reconciler) HasLoadBalancers() bool { return r.deployer != nil }

// Run runs the load balancers until the context is done, once the Gateways are read: security rules and addresses without
// a known owner may be theirs.
func (r *Reconciler) Run(ctx context.Context) {
	r.awaitGateways(ctx)
	r.deployer.Run(ctx)
}

// RetryFailed requeues requests that failed because of the API server.
func (r *Reconciler) RetryFailed(now time.Time) { r.queue.RetryFailed(now) }

// Setup adds the controller to the manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	return r.watchNamespaces(builder.ControllerManagedBy(mgr).Named("loadbalancer")).
		Watches(&corev1.Service{}, k8s.MapHandler(r.balancedService), builder.WithPredicates(balancedChanged())).
		Watches(&v1alpha1.BackendPool{}, k8s.MapHandler(r.servicesOfPool), builder.WithPredicates(poolDeleted())).
		Watches(&corev1.Node{}, k8s.MapHandler(r.servicesAtNodes), builder.WithPredicates(k8s.UpdatePredicate(r.view.NodeOrLabelsDiffer))).
		Watches(&discoveryv1.EndpointSlice{}, k8s.MapHandler(serviceOfSlice(r.view)), builder.WithPredicates(trafficChanged())).
		WatchesRawSource(r.queue.Source()).
		WithOptions(controller.Options{RateLimiter: r.cfg.Backoff.NewRateLimiter(), NewQueue: k8s.NewNamespaceQueue, MaxConcurrentReconciles: 4}).
		Complete(r.queue.WrapReconciler(r.Reconcile))
}

// Balancers deploys load balancers; see loadbalancer.LoadBalancers.
type Balancers interface {
	servicelb.LoadBalancers
	// Run runs until the context is done and all work has ended.
	Run(ctx context.Context)
	// Names returns the names of all load balancers of the cluster.
	Names() []string
	LeftToOthers(pool lb.PoolKey) bool
	// HealthPort returns the port that the probes of all rules of a pool request by HTTP, or 0, and whether that is
	// known.
	HealthPort(pool lb.PoolID) (port int32, known bool)
	// ListOrphans returns resources named after a Service that does not exist.
	ListOrphans(ctx context.Context) ([]loadbalancer.Orphan, error)
	// CleanUp deletes resources that Weir created, left to others, and no longer needs.
	CleanUp(ctx context.Context) (loadbalancer.CleanupResult, error)
	// NodeConfigurations returns the initial configuration of nodes in Azure, by address and machine.
	NodeConfigurations(ctx context.Context) (map[string]string, error)
}

// Options select the Services and configure their load balancers.
type Options struct {
	// Class is the spec.loadBalancerClass of served Services; empty means those without one.
	Class string
	// AllowRemoval allows removing any number of addresses.
	AllowRemoval bool
	// Settings are the cluster settings.
	Settings service.Settings
	// Namespace is the namespace of the BackendPools of nodes.
	Namespace string
	// Guarded is true if a security group is configured.
	Guarded bool
	// RequireEffectiveRestrictions rejects Services with restrictions that have no effect.
	RequireEffectiveRestrictions bool
	// ResyncPeriod is the resync period of a load balancer; 0 is never.
	ResyncPeriod time.Duration
	// Configurations are the configurations among which nodes and Services are placed; empty for a single load
	// balancer.
	Configurations []service.Configuration
	// AvailabilitySet returns the availability set of a node's virtual machine by providerID; see
	// azure.Client. It is called only if a configuration has a PrimaryVMSet.
	AvailabilitySet func(ctx context.Context, providerID string) (string, error)
	// NewDryRun returns a dry run for a Service.
	NewDryRun func() *dryrun.Simulator
}

// Options returns the load balancer options.
func (r *Reconciler) Options() Options { return r.options }

// RetainReason returns why the Azure resources of a Service are retained although it is not served; "" if they are
// not.
func (r *Reconciler) RetainReason(s *corev1.Service) string {
	return r.decisions.RetainReason(cache.ServiceLB(s))
}

// BuildRequest returns the load balancer request of a Service, and why it is rejected.
func (r *Reconciler) BuildRequest(ctx context.Context, s *corev1.Service) (req loadbalancer.Request, refused string, err error) {
	return r.decisions.BuildRequest(ctx, r.deployer, cache.ServiceLB(s))
}

// PersistResult creates and deletes BackendPools after a completed request.
func (r *Reconciler) PersistResult(ctx context.Context, result loadbalancer.Result) error {
	return r.decisions.PersistResult(ctx, result)
}

// CountStates returns the number of Services with a load balancer of Weir, by state.
func (r *Reconciler) CountStates() map[string]int {
	count := map[string]int{}
	for condition, n := range r.decisions.States.CountConditions() {
		count[string(condition)] = n
	}
	return count
}

// CountConflicting returns the number of contested Services.
func (r *Reconciler) CountConflicting() int {
	return r.CountStates()[string(servicelb.ConditionConflict)]
}

// KnownUID reports whether this process knows a load balancer of the Service, and the Service's UID.
func (r *Reconciler) KnownUID(name string) (uid string, known bool) {
	return r.decisions.States.KnownUID(name)
}
