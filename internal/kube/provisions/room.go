// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/lead"
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
	Fence *lead.Fence
	// Spans provides the tracer for attempts; nil disables tracing.
	Spans trace.TracerProvider
	Log   *slog.Logger
}

// Room reconciles Provisions and runs their attempts.
type Room struct {
	Config
	attempts *attempts
	knocks   *knocks
	dial     dial // connects to targets; nil means TCP
	queue    workqueue.Queue
	bounds
}

// New returns the controller. It needs Setup and Run.
func New(c Config) *Room {
	r := &Room{Config: c, bounds: newBounds()}
	r.attempts, r.knocks = newAttempts(r.queue.Add), newKnocks(r.queue.Add)
	return r
}

// Run starts attempts until ctx is done, and returns once all have ended.
func (r *Room) Run(ctx context.Context) { r.attempts.run(ctx) }

// Retry requeues what failed because of the API server.
func (r *Room) Retry(now time.Time) { r.queue.Retry(now) }

const sideBySide = 4

// Setup adds the controller to the manager.
func (r *Room) Setup(mgr manager.Manager, backoff workqueue.Backoff) error {
	err := builder.ControllerManagedBy(mgr).Named("provision").
		Watches(&v1alpha1.Provision{}, workqueue.Mapped(itself), builder.WithPredicates(asked())).
		Watches(&v1alpha1.ProvisioningPolicy{}, workqueue.Mapped(r.inNamespaceOf), builder.WithPredicates(predicate.GenerationChangedPredicate{}, workqueue.Live())).
		Watches(&v1alpha1.Partner{}, workqueue.Mapped(r.ofPartner), builder.WithPredicates(predicate.GenerationChangedPredicate{}, workqueue.Live())).
		Watches(&corev1.Namespace{}, workqueue.Mapped(r.inNamespace), builder.WithPredicates(partnerChanged(), workqueue.Live())).
		WatchesRawSource(r.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.RateLimiter(), NewQueue: workqueue.NewFair, MaxConcurrentReconciles: sideBySide}).
		Complete(r.queue.Reconciler(r.reconcile))
	if err != nil {
		return fmt.Errorf("controller of Provisions: %w", err)
	}
	return nil
}

func itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func asked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, after := u.ObjectOld, u.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	}}
}

func partnerChanged() predicate.Predicate {
	return workqueue.Changed(func(before, after *corev1.Namespace) bool {
		return before.Labels[v1alpha1.PartnerLabel] != after.Labels[v1alpha1.PartnerLabel]
	})
}

func (r *Room) inNamespaceOf(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.in(ctx, obj.GetNamespace())
}

func (r *Room) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.in(ctx, obj.GetName())
}

func (r *Room) ofPartner(ctx context.Context, obj client.Object) []reconcile.Request {
	var organisations corev1.NamespaceList
	if err := r.Cached.List(ctx, &organisations, client.MatchingLabels{v1alpha1.PartnerLabel: obj.GetName()}); err != nil {
		r.Log.Error("organisations of a partner", "partner", obj.GetName(), "err", err)
		return nil
	}
	var all []reconcile.Request
	for i := range organisations.Items {
		all = append(all, r.in(ctx, organisations.Items[i].Name)...)
	}
	return all
}

func (r *Room) in(ctx context.Context, namespace string) []reconcile.Request {
	var list v1alpha1.ProvisionList
	if err := r.Cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		r.Log.Error("Provisions of a namespace", "namespace", namespace, "err", err)
		return nil
	}
	var all []reconcile.Request
	for i := range list.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return all
}
