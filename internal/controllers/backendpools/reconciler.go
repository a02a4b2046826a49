// SPDX-License-Identifier: Apache-2.0

package backendpools

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
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// Config holds the dependencies of a Reconciler.
type Config struct {
	View     *cache.Snapshot
	Statuses *backendpool.Statuses
	Owner    backendpool.Owner
	// AdminStates receives changes of nodes' admin states.
	Events      Events
	AdminStates func(p *v1alpha1.BackendPool, binding backendpool.Binding, r updater.Report, t backendpool.AdminChanges)
	// PoolsOfLoadBalancer returns the BackendPools at the pools a load-balanced Service may own.
	PoolsOfLoadBalancer func(*corev1.Service) []*v1alpha1.BackendPool
	ConfigurationOf     func(loadBalancer string) string
	// RecheckInterval and ReleaseRetryInterval are as in backendpool.Config.
	RecheckInterval, ReleaseRetryInterval time.Duration
	// Stale reports whether the informers may be outdated; nil means never.
	Stale func(now time.Time) bool
	Log   *slog.Logger
}

// Reconciler reconciles BackendPools. Package backendpool decides about them.
type Reconciler struct {
	*backendpool.Controller
	Statuses *backendpool.Statuses

	view                *cache.Snapshot
	poolsOfLoadBalancer func(*corev1.Service) []*v1alpha1.BackendPool
	poolQueue           k8s.WorkQueue // of BackendPools
	serviceQueue        k8s.WorkQueue // of Services
}

// New returns a Reconciler. Its Controller needs its workers before Setup.
func New(c Config) *Reconciler {
	r := &Reconciler{Statuses: c.Statuses, view: c.View, poolsOfLoadBalancer: c.PoolsOfLoadBalancer}
	r.Controller = backendpool.New(backendpool.Config{
		Cluster: cluster{c.View, c.ConfigurationOf}, Owner: c.Owner, Events: eventRecorder{c.View, c.Events, c.AdminStates},
		Queue: func(ref schedule.Ref) {
			r.RequeuePool(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		},
		RecheckInterval: c.RecheckInterval, ReleaseRetryInterval: c.ReleaseRetryInterval, Retention: &backendpool.RetentionPolicy{Stale: c.Stale, NodeAt: c.View.NodeByAddress}, Log: c.Log,
	}, c.Statuses)
	return r
}

// RequeuePool requeues a BackendPool.
func (r *Reconciler) RequeuePool(name types.NamespacedName) { r.poolQueue.Add(name) }

// RequeueMembers requeues the Services of pools.
func (r *Reconciler) RequeueMembers(pools []lb.PoolID) {
	for _, id := range pools {
		for _, p := range r.view.PoolsAt(id.Key()) {
			if p.Spec.ServiceRef != nil {
				r.serviceQueue.Add(types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name})
			}
		}
	}
}

// RetryFailed requeues what failed because of the API server.
func (r *Reconciler) RetryFailed(now time.Time) {
	r.serviceQueue.RetryFailed(now)
	r.poolQueue.RetryFailed(now)
}

// MembersOf returns the nodes of a pool, including retained ones.
func (r *Reconciler) MembersOf(p *v1alpha1.BackendPool) (membership.Set, error) {
	return backendpool.MembersOf(r.Controller, p)
}

// ReleaseRetained requeues pools with members retained while the informers may have been outdated.
func (r *Reconciler) ReleaseRetained(now time.Time) {
	backendpool.RecheckAt(r.Controller, r.Retention.ReleaseHeld(), now)
}

// RetryStatuses requeues the BackendPools with pending status writes.
func (r *Reconciler) RetryStatuses() {
	for _, ref := range r.Statuses.ListUnsaved() {
		r.RequeuePool(client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	}
}

const maxConcurrentReconciles = 4

// Setup adds two controllers, keyed by Service for endpoints and by BackendPool.
func (r *Reconciler) Setup(mgr manager.Manager, backoff k8s.QueueBackoff) error {
	options := func() controller.Options {
		return controller.Options{RateLimiter: backoff.NewRateLimiter(), NewQueue: k8s.NewNamespaceQueue, MaxConcurrentReconciles: maxConcurrentReconciles}
	}
	live := k8s.IgnoreInitialList
	err := builder.ControllerManagedBy(mgr).Named("service").
		Watches(&discoveryv1.EndpointSlice{}, k8s.MapHandler(r.servicesOfSlice), builder.WithPredicates(r.sliceChanged(), live())).
		Watches(&corev1.Service{}, k8s.MapHandler(r.boundService), builder.WithPredicates(serviceChanged(), live())).
		Watches(&corev1.Node{}, k8s.MapHandler(r.servicesOnNode), builder.WithPredicates(r.nodeChanged(), live())).
		WatchesRawSource(r.serviceQueue.Source()).
		WithOptions(options()).
		Complete(r.serviceQueue.WrapReconciler(r.reconcileEndpoints))
	if err != nil {
		return fmt.Errorf("controller of Services: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("backendpool").
		Watches(&v1alpha1.BackendPool{}, k8s.MapHandler(r.poolAndAffected), builder.WithPredicates(poolChanged())).
		Watches(&corev1.Service{}, k8s.MapHandler(r.poolsOfService), builder.WithPredicates(serviceChanged())).
		Watches(&corev1.Node{}, k8s.MapHandler(r.poolsOfNode), builder.WithPredicates(r.nodeOrLabelsChanged())).
		Watches(&discoveryv1.EndpointSlice{}, k8s.MapHandler(r.poolsOfExcludedNodes), builder.WithPredicates(r.hostsChanged())).
		Watches(&corev1.Namespace{}, k8s.MapHandler(r.poolsIn), builder.WithPredicates(grantChanged())).
		WatchesRawSource(r.poolQueue.Source()).
		WithOptions(options()).
		Complete(r.poolQueue.WrapReconciler(r.reconcilePool))
	if err != nil {
		return fmt.Errorf("controller of BackendPools: %w", err)
	}
	return nil
}
