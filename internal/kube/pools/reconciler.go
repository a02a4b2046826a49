// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/backendpool/keeping"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
)

// Config is what a Reconciler works with.
type Config struct {
	View     *view.Snapshot
	Statuses *backendpool.Statuses
	// Owner says whose pools are.
	Owner backendpool.Owner
	// Events takes what people are told, and AdminStates what becomes of those of nodes.
	Events      Events
	AdminStates func(p *v1alpha1.BackendPool, is backendpool.Entitlement, r poolupdate.Report, t backendpool.Turned)
	// OfLoadBalancer returns the BackendPools of the pools that a Service with a load balancer
	// may have for itself, whosever they are.
	OfLoadBalancer func(*corev1.Service) []*v1alpha1.BackendPool
	// ConfigurationOf names the load balancer configuration that a load balancer belongs to.
	ConfigurationOf func(loadBalancer string) string
	// RecheckAfter and ReleaseAgainAfter are those of backendpool.Config.
	RecheckAfter, ReleaseAgainAfter time.Duration
	// Stale reports whether what the informers hold may be old; nil if it never is.
	Stale func(now time.Time) bool
	Log   *slog.Logger
}

// Reconciler brings BackendPools into the state that they are entitled to. Package backendpool
// decides what that is.
type Reconciler struct {
	*backendpool.Controller
	Statuses *backendpool.Statuses

	view *view.Snapshot
	// poolsOfBalanced is Config.OfLoadBalancer.
	poolsOfBalanced func(*corev1.Service) []*v1alpha1.BackendPool
	queue           workqueue.Queue // of BackendPools
	endpoints       workqueue.Queue // of Services
}

// New returns a Reconciler, whose Controller gets its Lanes before Setup.
func New(c Config) *Reconciler {
	r := &Reconciler{Statuses: c.Statuses, view: c.View, poolsOfBalanced: c.OfLoadBalancer}
	r.Controller = backendpool.New(backendpool.Config{
		Cluster: cluster{c.View, c.ConfigurationOf}, Owner: c.Owner, Events: reporter{c.View, c.Events, c.AdminStates},
		Queue:        func(ref poolschedule.Ref) { r.Queue(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}) },
		RecheckAfter: c.RecheckAfter, ReleaseAgainAfter: c.ReleaseAgainAfter, Keeper: &keeping.Keeper{Stale: c.Stale, NodeAt: c.View.NodeByAddress}, Log: c.Log,
	}, c.Statuses)
	return r
}

// Queue has a BackendPool reconciled.
func (r *Reconciler) Queue(name types.NamespacedName) { r.queue.Add(name) }

// Retry has those reconciled again that failed because of the API server.
func (r *Reconciler) Retry(now time.Time) {
	r.endpoints.Retry(now)
	r.queue.Retry(now)
}

// MembersOf returns which nodes belong in the pool of a BackendPool, those included that stay for a while.
func (r *Reconciler) MembersOf(p *v1alpha1.BackendPool) (membership.Set, error) {
	return backendpool.MembersOf(r.Controller, p)
}

// ReleaseHeld has those pools looked at again in which members stayed because what was known of the
// cluster might have been old.
func (r *Reconciler) ReleaseHeld(now time.Time) {
	backendpool.LookAgainAt(r.Controller, r.Keeper.Release(), now)
}

// RetryStatuses has those reconciled again whose status could not be written.
func (r *Reconciler) RetryStatuses() {
	for _, ref := range r.Statuses.Unsaved() {
		r.Queue(client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	}
}

// sideBySide is how many objects of a kind are reconciled at a time: most of that is waiting for
// the API server.
const sideBySide = 4

// Setup adds the controllers to the manager: one keyed by Service, for endpoints, and one keyed by
// BackendPool.
func (r *Reconciler) Setup(mgr manager.Manager, backoff workqueue.Backoff) error {
	options := func() controller.Options {
		return controller.Options{RateLimiter: backoff.RateLimiter(), NewQueue: workqueue.NewFair, MaxConcurrentReconciles: sideBySide}
	}
	live := workqueue.Live
	err := builder.ControllerManagedBy(mgr).Named("service").
		Watches(&discoveryv1.EndpointSlice{}, workqueue.Mapped(r.servicesOfSlice), builder.WithPredicates(r.sliceChanged(), live())).
		Watches(&corev1.Service{}, workqueue.Mapped(r.boundService), builder.WithPredicates(serviceChanged(), live())).
		Watches(&corev1.Node{}, workqueue.Mapped(r.servicesOnNode), builder.WithPredicates(r.nodeChanged(), live())).
		WatchesRawSource(r.endpoints.Source()).
		WithOptions(options()).
		Complete(r.endpoints.Reconciler(r.reconcileEndpoints))
	if err != nil {
		return fmt.Errorf("controller of Services: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("backendpool").
		Watches(&v1alpha1.BackendPool{}, workqueue.Mapped(r.poolAndRivals), builder.WithPredicates(poolChanged())).
		Watches(&corev1.Service{}, workqueue.Mapped(r.poolsOfService), builder.WithPredicates(serviceChanged())).
		Watches(&corev1.Node{}, workqueue.Mapped(r.poolsOfNode), builder.WithPredicates(r.nodeOrLabelsChanged())).
		Watches(&discoveryv1.EndpointSlice{}, workqueue.Mapped(r.poolsOfLeavingNodes), builder.WithPredicates(r.hostsChanged())).
		Watches(&corev1.Namespace{}, workqueue.Mapped(r.poolsIn), builder.WithPredicates(grantChanged())).
		WatchesRawSource(r.queue.Source()).
		WithOptions(options()).
		Complete(r.queue.Reconciler(r.reconcile))
	if err != nil {
		return fmt.Errorf("controller of BackendPools: %w", err)
	}
	return nil
}
