// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
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
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/ratelimit"
)

// discoveryInterval is the interval of requests for the types of Gateway API until they exist.
const discoveryInterval = 30 * time.Second

// discoveryRetryInterval is that of requests that fail.
const discoveryRetryInterval = 5 * time.Second

// resources are the types that must exist.
var resources = []string{"gatewayclasses", "gateways", "tcproutes", "udproutes", "referencegrants"}

// Watch waits until the API server has Gateway API, and then adds the controller and its cache to the running manager.
// Call it while this process leads.
func (r *Reconciler) Watch(ctx context.Context, mgr manager.Manager) error {
	types, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("client for the types of Gateway API: %w", err)
	}
	if !awaitTypes(ctx, types, func() { r.loading.setList(nil) }, resources...) { // without the types there are no Gateways
		return nil
	}
	options := newCacheOptions(mgr.GetScheme())
	options.DefaultWatchErrorHandler = r.newWatchErrorHandler()
	options.HTTPClient, options.Mapper = k8s.UntrackedClient(mgr.GetHTTPClient()), mgr.GetRESTMapper()
	objects, err := ctrlcache.New(mgr.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("cache of Gateways: %w", err)
	}
	if err := addIndexes(ctx, objects); err != nil {
		return err
	}
	r.objects.cached, r.objects.view = objects, r.cfg.View // before the first reconciliation
	c, err := r.addController(mgr, objects)
	if err != nil || !objects.WaitForCacheSync(ctx) {
		return err
	}
	if err := r.listGateways(ctx); err != nil || !awaitTypes(ctx, types, func() {}, "tlsroutes") {
		return err
	}
	return r.watchTLSRoutes(ctx, c, objects)
}

// newWatchErrorHandler returns a handler that reports a removed type once instead of with every retry.
func (r *Reconciler) newWatchErrorHandler() toolscache.WatchErrorHandlerWithContext {
	var reported sync.Map
	return func(ctx context.Context, from *toolscache.Reflector, err error) {
		if !apierrors.IsNotFound(err) {
			toolscache.DefaultWatchErrorHandler(ctx, from, err)
			return
		}
		if _, ok := reported.LoadOrStore(from.TypeDescription(), true); !ok {
			r.cfg.Log.WarnContext(ctx, "a type of Gateway API was removed: routes do not change until its CRD exists", "type", from.TypeDescription())
		}
	}
}

// watchTLSRoutes watches TLSRoutes, which get a status only.
func (r *Reconciler) watchTLSRoutes(ctx context.Context, c controller.Controller, objects ctrlcache.Cache) error {
	if err := addRouteIndexes(ctx, objects, &gatewayv1.TLSRoute{}); err != nil {
		return err
	}
	r.objects.hasTLSRoutes.Store(true)
	// The controller is locked while its first sources start: add another one only after that.
	if !objects.WaitForCacheSync(ctx) || ratelimit.Sleep(ctx, time.Second) != nil {
		return nil
	}
	if err := c.Watch(source.Kind(objects, client.Object(&gatewayv1.TLSRoute{}), k8s.MapHandler(r.requestsOfRoute))); err != nil {
		return fmt.Errorf("watch of TLSRoutes: %w", err)
	}
	return nil
}

// listGateways lists the Gateways for loading.
func (r *Reconciler) listGateways(ctx context.Context) error {
	var list gatewayv1.GatewayList
	if err := r.objects.cached.List(ctx, &list); err != nil {
		return fmt.Errorf("list of Gateways: %w", err)
	}
	var names []apitypes.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	r.loading.setList(names)
	return nil
}

// awaitTypes waits until the API server has these types; false if the context is done before. absent is called when it
// reports that it lacks one.
func awaitTypes(ctx context.Context, types discovery.DiscoveryInterface, absent func(), names ...string) bool {
	for {
		has, err := hasTypes(types, names)
		interval := discoveryInterval
		switch {
		case has:
			return true
		case err != nil:
			interval = discoveryRetryInterval
		default:
			absent()
		}
		if ratelimit.Sleep(ctx, interval) != nil {
			return false
		}
	}
}

func hasTypes(types discovery.DiscoveryInterface, names []string) (bool, error) {
	list, err := types.ServerResourcesForGroupVersion(gatewayv1.GroupVersion.String())
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}), nil
}

func (r *Reconciler) addController(mgr manager.Manager, objects ctrlcache.Cache) (controller.Controller, error) {
	if err := mgr.Add(objects); err != nil {
		return nil, fmt.Errorf("cache of Gateways: %w", err)
	}
	options := controller.Options{
		Reconciler: r.queue.WrapReconciler(r.Reconcile), RateLimiter: r.cfg.Backoff.NewRateLimiter(), NewQueue: k8s.NewNamespaceQueue,
		MaxConcurrentReconciles: 1, CacheSyncTimeout: math.MaxInt64, // the rest of Weir works without the permissions
	}
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := controller.NewUnmanaged("gateway", options)
	if err != nil {
		return nil, fmt.Errorf("controller of Gateways: %w", err)
	}
	sources := []source.Source{r.queue.Source()}
	for kind, to := range map[client.Object]handler.MapFunc{
		&gatewayv1.GatewayClass{}: r.requestsOfClass, &gatewayv1.Gateway{}: requestsOfGateway, &gatewayv1.TCPRoute{}: r.requestsOfRoute,
		&gatewayv1.UDPRoute{}: r.requestsOfRoute, &gatewayv1.ReferenceGrant{}: r.requestsOfGrant, &corev1.Service{}: r.requestsOfService,
	} {
		sources = append(sources, source.Kind(objects, kind, k8s.MapHandler(to)))
	}
	sources = append(sources, source.Kind(mgr.GetCache(), client.Object(&corev1.Namespace{}), k8s.MapHandler(r.requestsOfNamespace)))
	for _, from := range sources {
		if err := c.Watch(from); err != nil {
			return nil, fmt.Errorf("controller of Gateways: %w", err)
		}
	}
	if err := mgr.Add(c); err != nil { // last: the manager runs, and a controller is locked while its sources start
		return nil, fmt.Errorf("controller of Gateways: %w", err)
	}
	return c, nil
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
