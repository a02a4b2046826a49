// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
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
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
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
	Backoff k8s.QueueBackoff
	Log     *slog.Logger
}

// Reconciler keeps Gateways in View.Services, and their statuses and those of routes.
type Reconciler struct {
	cfg     Config
	objects objects
	queue   k8s.WorkQueue
	ports   nodePorts
	loading *loading
	mu      sync.Mutex // guards changes of cfg.Gateways, and inSync
	// inSync are the Gateways of which Azure has exactly what cfg.Gateways has.
	inSync map[types.UID]bool
}

// New returns a Reconciler that is idle until Watch finds Gateway API.
func New(c Config) *Reconciler {
	return &Reconciler{cfg: c, objects: objects{hasTLSRoutes: &atomic.Bool{}}, loading: newLoading(), inSync: map[types.UID]bool{}}
}

// RetryFailed requeues requests that failed because of the API server.
func (r *Reconciler) RetryFailed(now time.Time) { r.queue.RetryFailed(now) }

// Reconcile reconciles a Gateway, or a GatewayClass if the request has no namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var err error
	var requeueAfter time.Duration
	if req.Namespace == "" {
		err = r.reconcileClass(ctx, req.Name)
	} else {
		requeueAfter, err = r.reconcileGateway(ctx, req.NamespacedName)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // the cache is older than the object: its event follows
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return k8s.ReconcileResult(ctx, err, requeueAfter)
}

func (r *Reconciler) reconcileGateway(ctx context.Context, name types.NamespacedName) (requeueAfter time.Duration, err error) {
	gw, err := r.objects.gateway(ctx, name)
	if err != nil {
		return 0, err
	}
	routes, err := r.objects.routes(ctx, byGateway, name.String())
	if err != nil {
		return 0, err
	}
	managed, isMissing := false, false
	if gw != nil {
		served, exists, err := r.objects.hasClass(ctx, gw)
		if err != nil {
			return 0, err
		}
		isMissing = !exists && hasFinalizer(gw) && gw.DeletionTimestamp == nil // a class that is deleted by mistake must not delete addresses
		managed = served || isMissing
	}
	if gw == nil || !managed && !hasFinalizer(gw) {
		r.removeService(name)
		requeueAfter, err := r.writeRoutes(ctx, name, routes, nil)
		return requeueAfter, errors.Join(r.deleteCopies(ctx, name, nil), err)
	}
	refs := &references{objects: r.objects, ctx: ctx}
	a := routing.Attach(gw, routes, refs)
	if a.RejectParameters(unsupportedText(gw)); isMissing {
		a.RejectParameters(fmt.Sprintf("its GatewayClass %s is missing", gw.Spec.GatewayClassName))
	}
	used, requeueAfter, failed := r.assignNodePorts(ctx, refs, gw, a)
	if refs.err != nil {
		return 0, refs.err
	}
	s, isInSync := r.updateService(gw, managed, a)
	if isInSync || gw.DeletionTimestamp != nil && !hasFinalizer(gw) { // else Azure may still forward to others
		failed = errors.Join(failed, r.deleteCopies(ctx, name, used))
	}
	if !managed || isMissing { // its status is another controller's, or the next class's
		return requeueAfter, failed
	}
	if gw.DeletionTimestamp != nil {
		return requeueAfter, errors.Join(failed, r.writeRemoval(ctx, gw, s))
	}
	if err := r.writeStatus(ctx, gw, a, s); err != nil {
		return 0, err
	}
	rest, err := r.writeRoutes(ctx, name, routes, a.Parents)
	if rest > 0 && (requeueAfter == 0 || rest < requeueAfter) {
		requeueAfter = rest
	}
	return requeueAfter, errors.Join(failed, err)
}

func hasFinalizer(gw *gatewayv1.Gateway) bool {
	return controllerutil.ContainsFinalizer(gw, metadata.ServiceFinalizer)
}

// updateService stores the Gateway as a Service, returns that, and reports whether Azure has exactly the same. An invalid
// Gateway keeps its address, and the rules that its routes may still have.
func (r *Reconciler) updateService(gw *gatewayv1.Gateway, managed bool, a *routing.Attachment) (s *corev1.Service, isInSync bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.loading.markStored(client.ObjectKeyFromObject(gw))
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
		return next, r.inSync[gw.UID]
	}
	if before != nil {
		delete(r.inSync, before.UID)
	}
	_ = r.cfg.Gateways.Update(next) // a store in memory returns no error
	r.cfg.Services.RequeueService(key)
	return next, false
}

// removeService removes a deleted Gateway, or one of another controller.
func (r *Reconciler) removeService(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.loading.markStored(name)
	r.ports.setCopies(name, 0)
	for _, other := range r.ports.claims.Remove(name) {
		r.queue.Add(other)
	}
	key := metadata.Key(name.Namespace, cache.GatewayServiceName(name.Name))
	if s := cache.Get[corev1.Service](r.cfg.Gateways, key); s != nil {
		delete(r.inSync, s.UID)
		_ = r.cfg.Gateways.Delete(s)
		r.cfg.Services.RequeueService(key)
	}
}
