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
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
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
	// Queue requests a reconciliation.
	Queue(name types.NamespacedName)
	LookAgain(p *v1alpha1.BackendPool, now time.Time)
	Rehearsed(ctx context.Context, p *v1alpha1.BackendPool, text string) error
	Holder(pool lb.PoolID) *v1alpha1.BackendPool
	Entitlement(p *v1alpha1.BackendPool, now time.Time) backendpool.Entitlement
	OursIn(p *v1alpha1.BackendPool) func(netip.Addr) bool
}

// Config configures a Reconciler.
type Config struct {
	View *view.Snapshot
	// Own determines pool ownership. Its load balancer fields are set when load balancers are enabled.
	Own    *ownership.Pools
	API    API
	Events Events
	// NotPlaced returns the first node without a load balancer and the reason; "" if none.
	NotPlaced func([]*corev1.Node) (name, why string)
	Backoff   workqueue.Backoff
	Log       *slog.Logger
}

// Reconciler reconciles the load balancers of Services. Package servicelb decides; the Reconciler implements
// its interfaces. It ignores Services until load balancers are enabled.
type Reconciler struct {
	holds
	sharers
	cfg   Config
	view  *view.Snapshot
	own   *ownership.Pools
	pools Pools
	queue workqueue.Queue
	// decide makes the decisions for a Service.
	decide *servicelb.Reconciler
	// balancers is nil if Weir creates no load balancers.
	balancers Balancers
	options   Options
	left      leftovers
}

// New returns a Reconciler that ignores all Services.
func New(c Config) *Reconciler {
	r := &Reconciler{holds: holds{c.View, c.Own}, cfg: c, view: c.View, own: c.Own, decide: servicelb.New(servicelb.Config{})}
	r.sharers = sharers{r}
	c.Own.Served = func(name, uid string) *servicelb.Served { return r.decide.States.Served(name, uid) }
	return r
}

// Connect sets the BackendPool reconciler. Call it before Setup.
func (r *Reconciler) Connect(pools Pools) { r.pools = pools }

// Work replaces the API server.
func (r *Reconciler) Work(api API) { r.cfg.API = api }

// Balance enables load balancers for Services. Call it before the first Service event.
func (r *Reconciler) Balance(b Balancers, o Options) {
	r.balancers, r.options = b, o
	r.own.Balancers, r.own.Namespace, r.own.Settings, r.own.Several = b, o.Namespace, o.Settings, o.Several
	r.view.Serving = view.Serving{LoadBalancers: true, Class: o.Class}
	r.decide = servicelb.New(servicelb.Config{
		Settings: servicelb.Settings{
			Class: o.Class, AllowRemoval: o.AllowRemoval, Service: o.Settings, Guarded: o.Guarded,
			RequireEffectiveRestrictions: o.RequireEffectiveRestrictions, LookAgainAfter: o.LookAgainAfter, Several: o.Several,
		},
		Cluster: serviceCluster{r}, Ledger: serviceLedger{r}, Reporter: serviceEvents{r}, Rehearser: serviceRehearser{r},
		Balancers: b, Pace: r.cfg.Backoff.Doubling(), Log: r.cfg.Log,
	})
}

// Balances reports whether Weir creates load balancers.
func (r *Reconciler) Balances() bool { return r.balancers != nil }

// Run runs the load balancers until the context is done.
func (r *Reconciler) Run(ctx context.Context) { r.balancers.Run(ctx) }

// Retry requeues requests that failed because of the API server.
func (r *Reconciler) Retry(now time.Time) { r.queue.Retry(now) }

// Setup adds the controller to the manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	return r.watchNamespaces(builder.ControllerManagedBy(mgr).Named("loadbalancer")).
		Watches(&corev1.Service{}, workqueue.Mapped(r.balancedService), builder.WithPredicates(balancedChanged())).
		Watches(&v1alpha1.BackendPool{}, workqueue.Mapped(r.servicesOfPool), builder.WithPredicates(poolGoes())).
		Watches(&corev1.Node{}, workqueue.Mapped(r.servicesAtNodes), builder.WithPredicates(workqueue.Changed(r.view.NodeOrLabelsDiffer))).
		Watches(&discoveryv1.EndpointSlice{}, workqueue.Mapped(serviceOfSlice(r.view)), builder.WithPredicates(takesOrNot())).
		WatchesRawSource(r.queue.Source()).
		WithOptions(controller.Options{RateLimiter: r.cfg.Backoff.RateLimiter(), NewQueue: workqueue.NewFair, MaxConcurrentReconciles: 4}).
		Complete(r.queue.Reconciler(r.Reconcile))
}

// Balancers deploys load balancers; see balancer.Balancers.
type Balancers interface {
	servicelb.Balancers
	// Run runs until the context is done and all work has ended.
	Run(ctx context.Context)
	// Names returns the names of all load balancers of the cluster.
	Names() []string
	LeftToOthers(pool lb.PoolKey) bool
	// Leftovers returns resources named after a Service that does not exist.
	Leftovers(ctx context.Context) ([]balancer.Leftover, error)
	// DeleteUnneeded deletes resources that Weir created, left to others, and no longer needs.
	DeleteUnneeded(ctx context.Context) (balancer.Deleted, error)
	// NodePlaces returns the initial configuration of nodes in Azure, by address and machine.
	NodePlaces(ctx context.Context) (map[string]string, error)
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
	// LookAgainAfter is the resync period of a load balancer; 0 is never.
	LookAgainAfter time.Duration
	// Several are the configurations among which nodes and Services are placed; empty for a single load
	// balancer.
	Several []service.Configuration
	// AvailabilitySet returns the availability set of a node's virtual machine by providerID; see
	// azure.Client. It is called only if a configuration has a PrimaryVMSet.
	AvailabilitySet func(ctx context.Context, providerID string) (string, error)
	// Rehearse returns a dry run for a Service.
	Rehearse func() *rehearse.Rehearsal
}

// Options returns the load balancer options.
func (r *Reconciler) Options() Options { return r.options }

// WhyKept returns why the Azure resources of a Service are retained although it is not served; "" if they are
// not.
func (r *Reconciler) WhyKept(s *corev1.Service) string { return r.decide.WhyKept(view.ServiceLB(s)) }

// Request returns the load balancer request of a Service, and why it is rejected.
func (r *Reconciler) Request(ctx context.Context, s *corev1.Service) (req balancer.Request, refused string, err error) {
	return r.decide.Request(ctx, r.balancers, view.ServiceLB(s))
}

// WriteDown creates and deletes BackendPools after a completed request.
func (r *Reconciler) WriteDown(ctx context.Context, result balancer.Result) error {
	return r.decide.WriteDown(ctx, result)
}

// States returns the number of Services with a load balancer of Weir, by state.
func (r *Reconciler) States() map[string]int {
	count := map[string]int{}
	for is, n := range r.decide.States.Count() {
		count[string(is)] = n
	}
	return count
}

// Contested returns the number of contested Services.
func (r *Reconciler) Contested() int { return r.States()[string(servicelb.Contested)] }

// Known reports whether this process knows a load balancer of the Service, and the Service's UID.
func (r *Reconciler) Known(name string) (uid string, known bool) { return r.decide.States.Known(name) }
