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

// API is the API server as far as Services and their BackendPools are concerned.
type API struct {
	Reader client.Reader // of the API server itself
	Cached client.Reader // of the manager's cache
	Writer client.Writer
	Status client.SubResourceWriter
}

// Events takes events about objects, and waits for nothing.
type Events interface {
	Add(about runtime.Object, kind, reason, message string)
}

// Pools are the BackendPools, as package backendpool has them.
type Pools interface {
	// Queue has a BackendPool reconciled.
	Queue(name types.NamespacedName)
	LookAgain(p *v1alpha1.BackendPool, now time.Time)
	Rehearsed(ctx context.Context, p *v1alpha1.BackendPool, text string) error
	Holder(pool lb.PoolID) *v1alpha1.BackendPool
	Entitlement(p *v1alpha1.BackendPool, now time.Time) backendpool.Entitlement
	OursIn(p *v1alpha1.BackendPool) func(netip.Addr) bool
}

// Config is what a Reconciler works with.
type Config struct {
	View *view.Snapshot
	// Own says whose pools are, and gets from Balance what it needs of load balancers.
	Own    *ownership.Pools
	API    API
	Events Events
	// NotPlaced returns the first of these nodes that has no place on a load balancer yet, and
	// why; an empty name if there is none.
	NotPlaced func([]*corev1.Node) (name, why string)
	Backoff   workqueue.Backoff
	Log       *slog.Logger
}

// Reconciler brings the load balancers of Services level. Package servicelb decides what happens
// next to each; this is its cluster, its ledger and its voice. Without Balance it has none, and
// leaves all Services alone.
type Reconciler struct {
	holds
	sharers
	cfg   Config
	view  *view.Snapshot
	own   *ownership.Pools
	pools Pools
	queue workqueue.Queue
	// decide says what happens next to the load balancer of a Service.
	decide *servicelb.Reconciler
	// balancers are nil if Weir makes no load balancers.
	balancers Balancers
	options   Options
	left      leftovers
}

// New returns a Reconciler that leaves all Services alone.
func New(c Config) *Reconciler {
	r := &Reconciler{holds: holds{c.View, c.Own}, cfg: c, view: c.View, own: c.Own, decide: servicelb.New(servicelb.Config{})}
	r.sharers = sharers{r}
	c.Own.Served = func(name, uid string) *servicelb.Served { return r.decide.States.Served(name, uid) }
	return r
}

// Connect gives it the room of BackendPools, before Setup.
func (r *Reconciler) Connect(pools Pools) { r.pools = pools }

// Work gives it another API server.
func (r *Reconciler) Work(api API) { r.cfg.API = api }

// Balance has it serve Services, before their first is seen.
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

// Balances reports whether Weir makes load balancers.
func (r *Reconciler) Balances() bool { return r.balancers != nil }

// Run has its load balancers worked on until the context is done.
func (r *Reconciler) Run(ctx context.Context) { r.balancers.Run(ctx) }

// Retry has those reconciled again that failed because of the API server.
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

// Balancers make load balancers what Services want; see balancer.Balancers.
type Balancers interface {
	servicelb.Balancers
	// Run works until the context is done, and returns when nothing is under way any more.
	Run(ctx context.Context)
	// Names are those of all load balancers that are the cluster's.
	Names() []string
	LeftToOthers(pool lb.PoolKey) bool
	// Leftovers returns what is named in Azure as a Service's, and no Service has it.
	Leftovers(ctx context.Context) ([]balancer.Leftover, error)
	// DeleteUnneeded deletes what Weir made, left to others, and nothing needs any more.
	DeleteUnneeded(ctx context.Context) (balancer.Deleted, error)
	// NodePlaces returns by address, and by machine, on which configuration Azure showed the nodes
	// at first.
	NodePlaces(ctx context.Context) (map[string]string, error)
}

// Options say which Services have a load balancer of Weir's, and how it is made.
type Options struct {
	// Class is the spec.loadBalancerClass of those Services; empty means those without one.
	Class string
	// AllowRemoval lets addresses be taken away, however many.
	AllowRemoval bool
	// Settings are what load balancers are made from.
	Settings service.Settings
	// Namespace is where the BackendPools of all nodes are.
	Namespace string
	// Guarded is true if a security group says who may connect.
	Guarded bool
	// RequireEffectiveRestrictions refuses Services whose restrictions have no effect.
	RequireEffectiveRestrictions bool
	// LookAgainAfter is how often a load balancer is compared though nothing changed; 0 is
	// never.
	LookAgainAfter time.Duration
	// Several are the load balancers on which nodes and Services are placed; empty where
	// there is one, which has all of them.
	Several []service.Configuration
	// AvailabilitySet returns the name of the availability set of a node's virtual machine,
	// by its providerID; see azure.Client. It is called where a configuration has a
	// PrimaryVMSet.
	AvailabilitySet func(ctx context.Context, providerID string) (string, error)
	// Rehearse returns a rehearsal for a Service that is only to be planned.
	Rehearse func() *rehearse.Rehearsal
}

// Options are those of Balance.
func (r *Reconciler) Options() Options { return r.options }

// WhyKept says why all that a Service has in Azure stays as it is, though it is not served; empty
// if it does not.
func (r *Reconciler) WhyKept(s *corev1.Service) string { return r.decide.WhyKept(view.ServiceLB(s)) }

// Request returns what is asked for a Service, and why it is refused.
func (r *Reconciler) Request(ctx context.Context, s *corev1.Service) (req balancer.Request, refused string, err error) {
	return r.decide.Request(ctx, r.balancers, view.ServiceLB(s))
}

// WriteDown makes and deletes BackendPools as a controller does when a request is done.
func (r *Reconciler) WriteDown(ctx context.Context, result balancer.Result) error {
	return r.decide.WriteDown(ctx, result)
}

// States counts the Services that have a load balancer of Weir's, or are to have one,
// by state.
func (r *Reconciler) States() map[string]int {
	count := map[string]int{}
	for is, n := range r.decide.States.Count() {
		count[string(is)] = n
	}
	return count
}

// Contested counts those of which somebody else keeps undoing something.
func (r *Reconciler) Contested() int { return r.States()[string(servicelb.Contested)] }

// Known reports whether a Service has a load balancer of Weir's, as far as this process knows, and
// the UID of that Service.
func (r *Reconciler) Known(name string) (uid string, known bool) { return r.decide.States.Known(name) }
