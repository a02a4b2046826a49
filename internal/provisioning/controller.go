// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
)

// Events queues events about objects without blocking.
type Events interface {
	Add(about runtime.Object, kind, reason, message string)
}

// Config holds the dependencies of the controller.
type Config struct {
	// API is this cluster's API server.
	API *rest.Config
	// Tokens is this cluster's token API.
	Tokens typedcorev1.ServiceAccountsGetter
	// Cached holds Provisions, their policies and Namespaces; Live reads from the API server.
	Cached, Live client.Reader
	Writer       client.Client
	Events       Events
	// Fence stops a former leader from writing to targets; nil disables it.
	Fence *leader.Fence
	// Spans provides the tracer for attempts; nil disables tracing.
	Spans trace.TracerProvider
	Log   *slog.Logger
}

// Reconciler reconciles Provisions and runs their attempts.
type Reconciler struct {
	Config
	attempts *attemptTracker
	probes   *probeTracker
	dial     dial // connects to targets; nil means TCP
	queue    k8s.WorkQueue
	limits
}

// New returns the controller. It needs Setup and Run.
func New(c Config) *Reconciler {
	r := &Reconciler{Config: c, limits: newLimits()}
	r.attempts, r.probes = newAttemptTracker(r.queue.Add), newProbeTracker(r.queue.Add)
	return r
}

// Run starts attempts until ctx is done, and returns once all have ended.
func (r *Reconciler) Run(ctx context.Context) { r.attempts.run(ctx) }

// Retry requeues what failed because of the API server.
func (r *Reconciler) Retry(now time.Time) { r.queue.RetryFailed(now) }

const maxConcurrentReconciles = 4

// Setup adds the controller to the manager.
func (r *Reconciler) Setup(mgr manager.Manager, backoff k8s.QueueBackoff) error {
	err := builder.ControllerManagedBy(mgr).Named("provision").
		Watches(&v1alpha1.Provision{}, k8s.MapHandler(requestFor), builder.WithPredicates(requestedChange())).
		Watches(&v1alpha1.ProvisioningPolicy{}, k8s.MapHandler(r.requestsForPolicy), builder.WithPredicates(predicate.GenerationChangedPredicate{}, k8s.IgnoreInitialList())).
		Watches(&v1alpha1.Partner{}, k8s.MapHandler(r.requestsForPartner), builder.WithPredicates(predicate.GenerationChangedPredicate{}, k8s.IgnoreInitialList())).
		Watches(&corev1.Namespace{}, k8s.MapHandler(r.requestsForNamespace), builder.WithPredicates(partnerChanged(), k8s.IgnoreInitialList())).
		WatchesRawSource(r.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.NewRateLimiter(), NewQueue: k8s.NewNamespaceQueue, MaxConcurrentReconciles: maxConcurrentReconciles}).
		Complete(r.queue.WrapReconciler(r.reconcile))
	if err != nil {
		return fmt.Errorf("controller of Provisions: %w", err)
	}
	return nil
}

func requestFor(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func requestedChange() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, after := u.ObjectOld, u.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	}}
}

func partnerChanged() predicate.Predicate {
	return k8s.UpdatePredicate(func(before, after *corev1.Namespace) bool {
		return before.Labels[v1alpha1.PartnerLabel] != after.Labels[v1alpha1.PartnerLabel]
	})
}

func (r *Reconciler) requestsForPolicy(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requestsIn(ctx, obj.GetNamespace())
}

func (r *Reconciler) requestsForNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requestsIn(ctx, obj.GetName())
}

func (r *Reconciler) requestsForPartner(ctx context.Context, obj client.Object) []reconcile.Request {
	var organisations corev1.NamespaceList
	if err := r.Cached.List(ctx, &organisations, client.MatchingLabels{v1alpha1.PartnerLabel: obj.GetName()}); err != nil {
		r.Log.Error("organisations of a partner", "partner", obj.GetName(), "err", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range organisations.Items {
		requests = append(requests, r.requestsIn(ctx, organisations.Items[i].Name)...)
	}
	return requests
}

func (r *Reconciler) requestsIn(ctx context.Context, namespace string) []reconcile.Request {
	var list v1alpha1.ProvisionList
	if err := r.Cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		r.Log.Error("Provisions of a namespace", "namespace", namespace, "err", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
