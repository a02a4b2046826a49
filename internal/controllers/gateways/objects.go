// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// Index names of the cache and their keys.
const (
	byGateway   = "gateway"   // namespace/name of the Gateways of a route, in its spec and status, or that of a copy
	byService   = "service"   // namespace/name of the backends of a route
	byNamespace = "namespace" // namespaces of the backends of a route in other namespaces
	byClass     = "class"     // name of the class of a Gateway
	bySelector  = "selector"  // "" for Gateways that select namespaces
)

// newCacheOptions returns the options of a cache of the objects of Gateway API and of backend Services, which are read only.
func newCacheOptions(scheme *runtime.Scheme) ctrlcache.Options {
	unsafe := true
	return ctrlcache.Options{
		Scheme: scheme, ReaderFailOnMissingInformer: true, DefaultUnsafeDisableDeepCopy: &unsafe,
		DefaultTransform: stripObject,
		ByObject: map[client.Object]ctrlcache.ByObject{
			&corev1.Service{}: {Transform: metadata.Strip(stripService)},
		},
	}
}

// stripObject removes the metadata that is not used, of which an object can have a megabyte.
func stripObject(obj any) (any, error) {
	m, err := meta.Accessor(obj)
	if err != nil { // a tombstone
		return obj, nil
	}
	m.SetManagedFields(nil)
	if gw, ok := obj.(*gatewayv1.Gateway); ok {
		maps.DeleteFunc(gw.Annotations, func(name, _ string) bool { return !cache.IsKept(name) })
		return obj, nil
	}
	m.SetAnnotations(nil)
	m.SetLabels(nil)
	return obj, nil
}

// stripService keeps what a backend and a copy need.
func stripService(s *corev1.Service) {
	annotations := map[string]string{}
	for _, name := range append([]string{service.DisableFloatingIP}, routing.CopyAnnotations...) {
		if value, ok := s.Annotations[name]; ok {
			annotations[name] = value
		}
	}
	s.ObjectMeta = metadata.Identity(s.ObjectMeta, nil)
	s.Annotations = annotations
	s.Status = corev1.ServiceStatus{}
}

// newRoutes returns objects of the route types that must exist.
func newRoutes() []client.Object {
	return []client.Object{&gatewayv1.TCPRoute{}, &gatewayv1.UDPRoute{}}
}

func addRouteIndexes(ctx context.Context, to ctrlcache.Cache, kind client.Object) error {
	for field, keys := range map[string]func(routing.Route) []string{byGateway: gatewayKeys, byService: serviceKeys, byNamespace: backendNamespaces} {
		if err := to.IndexField(ctx, kind, field, func(obj client.Object) []string {
			r, _ := routing.RouteOf(obj)
			return keys(r)
		}); err != nil {
			return fmt.Errorf("index of %T: %w", kind, err)
		}
	}
	return nil
}

func addIndexes(ctx context.Context, to ctrlcache.Cache) error {
	for _, kind := range newRoutes() {
		if err := addRouteIndexes(ctx, to, kind); err != nil {
			return err
		}
	}
	if err := to.IndexField(ctx, &corev1.Service{}, byGateway, copyKeys); err != nil {
		return fmt.Errorf("index of Services: %w", err)
	}
	for field, keys := range map[string]func(*gatewayv1.Gateway) []string{
		byClass: func(gw *gatewayv1.Gateway) []string { return []string{string(gw.Spec.GatewayClassName)} }, bySelector: selectorKeys,
	} {
		if err := to.IndexField(ctx, &gatewayv1.Gateway{}, field, func(obj client.Object) []string {
			gw, ok := obj.(*gatewayv1.Gateway)
			if !ok {
				return nil
			}
			return keys(gw)
		}); err != nil {
			return fmt.Errorf("index of Gateways: %w", err)
		}
	}
	return nil
}

func selectorKeys(gw *gatewayv1.Gateway) []string {
	for _, l := range gw.Spec.Listeners {
		if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil && l.AllowedRoutes.Namespaces.Selector != nil {
			return []string{"all"}
		}
	}
	return nil
}

func copyKeys(obj client.Object) []string {
	if s, ok := obj.(*corev1.Service); ok {
		if source, ok := routing.CopySourceOf(s); ok {
			return []string{source.Gateway.String()}
		}
	}
	return nil
}

func gatewayKeys(r routing.Route) (keys []string) {
	add := func(p gatewayv1.ParentReference) {
		if name, ok := r.GatewayOf(p); ok && !slices.Contains(keys, name.String()) {
			keys = append(keys, name.String())
		}
	}
	for _, p := range r.Parents {
		add(p)
	}
	for _, st := range r.Statuses {
		if st.ControllerName == routing.ControllerName {
			add(st.ParentRef)
		}
	}
	return keys
}

func serviceKeys(r routing.Route) (keys []string) {
	for _, b := range r.Backends() {
		if name, ok := r.ServiceOf(b); ok && !slices.Contains(keys, name.String()) {
			keys = append(keys, name.String())
		}
	}
	return keys
}

func backendNamespaces(r routing.Route) (keys []string) {
	for _, b := range r.Backends() {
		if name, ok := r.ServiceOf(b); ok && name.Namespace != r.Object.GetNamespace() && !slices.Contains(keys, name.Namespace) {
			keys = append(keys, name.Namespace)
		}
	}
	return keys
}

// objects reads the cache. A failed read is an error of the program: the informers exist and are synced.
type objects struct {
	cached client.Reader
	view   *cache.Snapshot
	// hasTLSRoutes is set once the cache has TLSRoutes.
	hasTLSRoutes *atomic.Bool
}

func (o objects) routes(ctx context.Context, index, key string) ([]routing.Route, error) {
	var tcp gatewayv1.TCPRouteList
	var udp gatewayv1.UDPRouteList
	var tls gatewayv1.TLSRouteList
	var routes []routing.Route
	lists := []client.ObjectList{&tcp, &udp}
	if o.hasTLSRoutes.Load() {
		lists = append(lists, &tls)
	}
	for _, list := range lists {
		if err := o.cached.List(ctx, list, client.MatchingFields{index: key}); err != nil {
			return nil, fmt.Errorf("routes: %w", err)
		}
	}
	for i := range tcp.Items {
		r, _ := routing.RouteOf(&tcp.Items[i])
		routes = append(routes, r)
	}
	for i := range udp.Items {
		r, _ := routing.RouteOf(&udp.Items[i])
		routes = append(routes, r)
	}
	for i := range tls.Items {
		r, _ := routing.RouteOf(&tls.Items[i])
		routes = append(routes, r)
	}
	return routes, nil
}

// gateway returns a Gateway; nil if it does not exist.
func (o objects) gateway(ctx context.Context, name types.NamespacedName) (*gatewayv1.Gateway, error) {
	gw := &gatewayv1.Gateway{}
	if err := o.cached.Get(ctx, name, gw); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return gw, nil
}

// hasClass reports whether the class of a Gateway is Weir's, and whether it exists.
func (o objects) hasClass(ctx context.Context, gw *gatewayv1.Gateway) (served, exists bool, err error) {
	class := &gatewayv1.GatewayClass{}
	if err := o.cached.Get(ctx, types.NamespacedName{Name: string(gw.Spec.GatewayClassName)}, class); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	return class.Spec.ControllerName == routing.ControllerName, true, nil
}

// references implements routing.Cluster. err is the first failed read.
type references struct {
	objects
	ctx context.Context //nolint:containedctx // it lives for one reconciliation
	err error
}

// Service implements routing.Cluster.
func (r *references) Service(name types.NamespacedName) *corev1.Service {
	s := &corev1.Service{}
	if err := r.cached.Get(r.ctx, name, s); err != nil {
		r.keep(client.IgnoreNotFound(err))
		return nil
	}
	return s
}

// IsPermitted implements routing.Cluster.
func (r *references) IsPermitted(route routing.Route, service types.NamespacedName) bool {
	var grants gatewayv1.ReferenceGrantList
	r.keep(r.cached.List(r.ctx, &grants, client.InNamespace(service.Namespace)))
	return slices.ContainsFunc(grants.Items, func(g gatewayv1.ReferenceGrant) bool { return routing.IsGranted(&g, route, service) })
}

// IsNamespaceSelected implements routing.Cluster.
func (r *references) IsNamespaceSelected(namespace string, from gatewayv1.RouteNamespaces) bool {
	ns := cache.Get[corev1.Namespace](r.view.Namespaces, namespace)
	selector, err := metav1.LabelSelectorAsSelector(from.Selector) // nil selects nothing
	return ns != nil && err == nil && selector.Matches(labels.Set(ns.Labels))
}

func (r *references) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}
