// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/k8s/workqueue"
)

// Services reconciles the load balancers.
type Services interface {
	// RequeueService requests a reconciliation of namespace/name in cache.Snapshot.Services.
	RequeueService(key string)
}

// Config holds the dependencies of a Reconciler.
type Config struct {
	View *cache.Snapshot
	// Gateways is the store of Gateways in View; see cache.Snapshot.AddGateways.
	Gateways toolscache.Indexer
	Services Services
	// Reader reads directly from the API server; Writer and Status write to it.
	Reader  client.Reader
	Writer  client.Writer
	Status  client.SubResourceWriter
	Backoff workqueue.Backoff
	Log     *slog.Logger
}

// Reconciler keeps Gateways in View.Services, and their statuses and those of routes.
type Reconciler struct {
	cfg     Config
	objects objects
	queue   workqueue.Queue
	mu      sync.Mutex // guards changes of cfg.Gateways
}

// New returns a Reconciler that is idle until Watch finds Gateway API.
func New(c Config) *Reconciler { return &Reconciler{cfg: c} }

// RetryFailed requeues requests that failed because of the API server.
func (r *Reconciler) RetryFailed(now time.Time) { r.queue.RetryFailed(now) }

// Reconcile reconciles a Gateway, or a GatewayClass if the request has no namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var err error
	if req.Namespace == "" {
		err = r.reconcileClass(ctx, req.Name)
	} else {
		err = r.reconcileGateway(ctx, req.NamespacedName)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // the cache is older than the object: its event follows
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return workqueue.ReconcileResult(ctx, err, 0)
}

func (r *Reconciler) reconcileGateway(ctx context.Context, name types.NamespacedName) error {
	gw, err := r.objects.gateway(ctx, name)
	if err != nil {
		return err
	}
	routes, err := r.objects.routes(ctx, byGateway, name.String())
	if err != nil {
		return err
	}
	managed := false
	if gw != nil {
		is, exists, err := r.objects.hasClass(ctx, gw)
		if err != nil {
			return err
		}
		if !exists && hasFinalizer(gw) && gw.DeletionTimestamp == nil { // a class that is deleted by mistake must not delete addresses
			r.keepService(gw)
			return nil
		}
		managed = is
	}
	if gw == nil || !managed && !hasFinalizer(gw) {
		r.removeService(ctx, name, routes)
		return r.writeRoutes(ctx, name, routes, nil)
	}
	refs := &references{objects: r.objects, ctx: ctx}
	a := routing.Attach(gw, routes, refs)
	held := r.findHolders(refs, gw, a.Rules())
	a.ExcludeUsedPorts(func(b routing.Backend) string { return held[b] })
	if refs.err != nil {
		return refs.err
	}
	s := r.updateService(ctx, gw, managed, a, routes)
	if !managed || gw.DeletionTimestamp != nil {
		return nil
	}
	if err := r.writeStatus(ctx, gw, a, s); err != nil {
		return err
	}
	return r.writeRoutes(ctx, name, routes, a.Parents)
}

func hasFinalizer(gw *gatewayv1.Gateway) bool {
	return controllerutil.ContainsFinalizer(gw, metadata.ServiceFinalizer)
}

// updateService stores the Gateway as a Service and returns that. An invalid Gateway keeps its address, and the rules
// that its routes may still have.
func (r *Reconciler) updateService(ctx context.Context, gw *gatewayv1.Gateway, managed bool, a *routing.Attachment, routes []routing.Route) *corev1.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := metadata.Key(gw.Namespace, cache.GatewayServiceName(gw.Name))
	before := cache.Get[corev1.Service](r.cfg.Gateways, key)
	next := newService(gw, managed, r.cfg.View.Serving.Class, a.Rules())
	isSame := before != nil && before.UID == next.UID
	if managed && gw.DeletionTimestamp == nil && !a.IsAccepted() {
		if isSame {
			keepSpec(next, before)
		} else {
			rejectSpec(next)
		}
	}
	if isSame {
		next.Status = before.Status
	}
	if isSame && reflect.DeepEqual(before, next) {
		return next
	}
	_ = r.cfg.Gateways.Update(next) // a store in memory returns no error
	r.cfg.Services.RequeueService(key)
	if !hasSamePorts(before, next) {
		r.requeueNeighbors(ctx, client.ObjectKeyFromObject(gw), routes)
	}
	return next
}

// keepService stores a Gateway without its class, unless it is stored, so that its resources are not taken for
// those of a deleted Gateway.
func (r *Reconciler) keepService(gw *gatewayv1.Gateway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, exists, _ := r.cfg.Gateways.GetByKey(metadata.Key(gw.Namespace, cache.GatewayServiceName(gw.Name))); !exists {
		s := newService(gw, true, r.cfg.View.Serving.Class, nil)
		rejectSpec(s)
		_ = r.cfg.Gateways.Update(s)
	}
}

// removeService removes a deleted Gateway, or one of another controller.
func (r *Reconciler) removeService(ctx context.Context, name types.NamespacedName, routes []routing.Route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := metadata.Key(name.Namespace, cache.GatewayServiceName(name.Name))
	if s := cache.Get[corev1.Service](r.cfg.Gateways, key); s != nil {
		_ = r.cfg.Gateways.Delete(s)
		r.cfg.Services.RequeueService(key)
		r.requeueNeighbors(ctx, name, routes)
	}
}

// requeueNeighbors requeues the other Gateways with a backend of these routes: a node port may be free for them.
func (r *Reconciler) requeueNeighbors(ctx context.Context, name types.NamespacedName, routes []routing.Route) {
	for _, other := range r.neighborsOf(ctx, name, routes) {
		r.queue.Add(other)
	}
}

func (r *Reconciler) neighborsOf(ctx context.Context, name types.NamespacedName, routes []routing.Route) (all []types.NamespacedName) {
	for _, route := range routes {
		for _, service := range serviceKeys(route) {
			others, err := r.objects.routes(ctx, byService, service)
			if err != nil {
				continue
			}
			for _, other := range others {
				for _, key := range gatewayKeys(other) {
					if gateway := cache.NamespacedName(key); gateway != name && !slices.Contains(all, gateway) {
						all = append(all, gateway)
					}
				}
			}
		}
	}
	return all
}

// findHolders returns what else forwards to the node ports of rules: the Service itself, or an older Gateway.
func (r *Reconciler) findHolders(refs *references, gw *gatewayv1.Gateway, rules []routing.Rule) map[routing.Backend]string {
	held := map[routing.Backend]string{}
	var routes []routing.Route
	for _, rule := range rules {
		if s := refs.Service(rule.Service); s != nil && usesNodePorts(s) {
			held[rule.Backend] = "the load balancer of Service " + rule.Service.String()
		}
		using, err := r.objects.routes(refs.ctx, byService, rule.Service.String())
		refs.keep(err)
		routes = append(routes, using...)
	}
	checked := map[types.NamespacedName]bool{client.ObjectKeyFromObject(gw): true}
	for _, route := range routes {
		for _, key := range gatewayKeys(route) {
			name := cache.NamespacedName(key)
			if checked[name] {
				continue
			}
			checked[name] = true
			older, err := r.objects.gateway(refs.ctx, name)
			refs.keep(err)
			if older == nil || routing.ComparePrecedence(older, gw) > 0 || isInternal(older) != isInternal(gw) {
				continue
			}
			if is, _, err := r.objects.hasClass(refs.ctx, older); err != nil || !is {
				refs.keep(err)
				continue
			}
			its, err := r.objects.routes(refs.ctx, byGateway, key)
			refs.keep(err)
			for _, rule := range routing.Attach(older, its, refs).Rules() {
				held[rule.Backend] = fmt.Sprintf("Gateway %s", name)
			}
		}
	}
	return held
}
