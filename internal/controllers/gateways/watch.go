// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/workqueue"
	"weir.dev/weir/internal/ratelimit/sleep"
)

// discoveryInterval is the interval of requests for the types of Gateway API until they exist.
const discoveryInterval = 30 * time.Second

// resources are the types that must exist.
var resources = []string{"gatewayclasses", "gateways", "tcproutes", "udproutes", "referencegrants"}

// Watch waits until the API server has Gateway API, and then adds the controller and its cache to the running manager.
// Call it while this process leads.
func (r *Reconciler) Watch(ctx context.Context, mgr manager.Manager) error {
	types, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("client for the types of Gateway API: %w", err)
	}
	for !hasTypes(types) {
		if sleep.For(ctx, discoveryInterval) != nil {
			return nil
		}
	}
	options := newCacheOptions(mgr.GetScheme())
	options.HTTPClient, options.Mapper = mgr.GetHTTPClient(), mgr.GetRESTMapper()
	objects, err := ctrlcache.New(mgr.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("cache of Gateways: %w", err)
	}
	if err := addIndexes(ctx, objects); err != nil {
		return err
	}
	r.objects.cached, r.objects.view = objects, r.cfg.View
	return r.addController(mgr, objects)
}

func hasTypes(types discovery.DiscoveryInterface) bool {
	list, err := types.ServerResourcesForGroupVersion(gatewayv1.GroupVersion.String())
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(resources, func(name string) bool {
		return !slices.ContainsFunc(list.APIResources, func(has metav1.APIResource) bool { return has.Name == name })
	})
}

func (r *Reconciler) addController(mgr manager.Manager, objects ctrlcache.Cache) error {
	if err := mgr.Add(objects); err != nil {
		return fmt.Errorf("cache of Gateways: %w", err)
	}
	c, err := controller.New("gateway", mgr, controller.Options{
		Reconciler: r.queue.WrapReconciler(r.Reconcile), RateLimiter: r.cfg.Backoff.NewRateLimiter(), NewQueue: workqueue.NewNamespaceQueue,
		MaxConcurrentReconciles: 1, CacheSyncTimeout: math.MaxInt64, // the rest of Weir works without the permissions
	})
	if err != nil {
		return fmt.Errorf("controller of Gateways: %w", err)
	}
	sources := []source.Source{r.queue.Source()}
	for kind, to := range map[client.Object]handler.MapFunc{
		&gatewayv1.GatewayClass{}: r.requestsOfClass, &gatewayv1.Gateway{}: requestsOfGateway, &gatewayv1.TCPRoute{}: r.requestsOfRoute,
		&gatewayv1.UDPRoute{}: r.requestsOfRoute, &gatewayv1.ReferenceGrant{}: r.requestsOfGrant, &corev1.Service{}: r.requestsOfService,
	} {
		sources = append(sources, source.Kind(objects, kind, workqueue.MapHandler(to)))
	}
	sources = append(sources, source.Kind(mgr.GetCache(), client.Object(&corev1.Namespace{}), workqueue.MapHandler(r.requestsOfNamespace)))
	for _, from := range sources {
		if err := c.Watch(from); err != nil {
			return fmt.Errorf("controller of Gateways: %w", err)
		}
	}
	return nil
}

func requestsOfGateway(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func (r *Reconciler) requestsOfClass(ctx context.Context, obj client.Object) []reconcile.Request {
	return append(requestsOfGateway(ctx, obj), r.requestsByIndex(ctx, byClass, obj.GetName())...)
}

// requestsByIndex returns requests for the Gateways with an index key.
func (r *Reconciler) requestsByIndex(ctx context.Context, index, key string) (requests []reconcile.Request) {
	var gateways gatewayv1.GatewayList
	if err := r.objects.cached.List(ctx, &gateways, client.MatchingFields{index: key}); err != nil {
		r.cfg.Log.ErrorContext(ctx, "Gateways are not reconciled", "err", err)
	}
	for i := range gateways.Items {
		requests = append(requests, requestsOfGateway(ctx, &gateways.Items[i])...)
	}
	return requests
}

func (r *Reconciler) requestsOfNamespace(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requestsByIndex(ctx, bySelector, "all")
}

// requestsOfRoute returns requests for the Gateways of a route.
func (r *Reconciler) requestsOfRoute(_ context.Context, obj client.Object) (requests []reconcile.Request) {
	route, ok := routing.RouteOf(obj)
	if !ok {
		return nil
	}
	for _, key := range gatewayKeys(route) {
		requests = append(requests, reconcile.Request{NamespacedName: cache.NamespacedName(key)})
	}
	return requests
}

func (r *Reconciler) requestsOfService(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.requestsOfRoutes(ctx, byService, client.ObjectKeyFromObject(obj).String())
	for _, key := range copyKeys(obj) {
		requests = append(requests, reconcile.Request{NamespacedName: cache.NamespacedName(key)})
	}
	return requests
}

func (r *Reconciler) requestsOfGrant(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.requestsOfRoutes(ctx, byNamespace, obj.GetNamespace())
}

func (r *Reconciler) requestsOfRoutes(ctx context.Context, index, key string) (requests []reconcile.Request) {
	routes, err := r.objects.routes(ctx, index, key)
	if err != nil {
		r.cfg.Log.ErrorContext(ctx, "Gateways are not reconciled", "err", err)
	}
	for _, route := range routes {
		requests = append(requests, r.requestsOfRoute(ctx, route.Object)...)
	}
	return requests
}
