// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/service"
)

// Reconcile reconciles the load balancer of a Service and reports the progress.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var gateway *corev1.Service
	if cache.IsGatewayKey(req.String()) {
		gateway = cache.Get[corev1.Service](r.view.Services, req.String())
	}
	requeueAfter, err := r.decisions.Reconcile(ctx, req.String(), time.Now())
	if gateway != nil && err == nil && r.decisions.States.IsInSync(req.String()) {
		r.gateways.HandleInSync(gateway)
	}
	if errors.Is(err, servicelb.ErrServiceGone) {
		return reconcile.Result{}, nil
	}
	return k8s.ReconcileResult(ctx, err, requeueAfter)
}

// HandleResult handles the result of a request. It is safe for concurrent use.
func (r *Reconciler) HandleResult(result loadbalancer.Result) {
	if r.decisions.States.AddResult(result) {
		r.queue.Add(cache.NamespacedName(result.Service))
	}
}

// HandleLoadBalancerCreated requeues the Services of a recreated load balancer, because their parts are gone. It is
// safe for concurrent use.
func HandleLoadBalancerCreated(r *Reconciler, id lb.LoadBalancerID) {
	for _, s := range r.ownership.ServicesOn(id.Name) {
		name := client.ObjectKeyFromObject(s)
		if r.decisions.States.AddLostPool(name.String(), servicelb.LostPool{LoadBalancer: id.Name}) {
			r.queue.Add(name)
		}
	}
}

// balancedService maps a Service to itself, if it has or had a load balancer of Weir, and to SCTP Services
// that share its private address.
func (r *Reconciler) balancedService(_ context.Context, obj client.Object) []reconcile.Request {
	name := client.ObjectKeyFromObject(obj)
	s, ok := obj.(*corev1.Service)
	_, known := r.decisions.States.KnownUID(name.String())
	if !ok || !r.view.Serving.IsManaged(s) && !r.view.Serving.NeedsCleanup(s) && !known {
		return nil
	}
	requests := []reconcile.Request{{NamespacedName: name}}
	for _, neighbor := range r.view.ServicesSharingAddress(s) {
		if slices.ContainsFunc(neighbor.Spec.Ports, func(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolSCTP }) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(neighbor)})
		}
	}
	return requests
}

// servicesOfPool maps a BackendPool to its Service, and one of nodes to all Services on its load balancer.
func (r *Reconciler) servicesOfPool(_ context.Context, obj client.Object) []reconcile.Request {
	p, ok := obj.(*v1alpha1.BackendPool)
	if !ok {
		return nil
	}
	if p.Spec.ServiceRef == nil {
		if !r.ownership.IsCreatedByWeir(p) { // a tenant's BackendPool must not requeue the Services of others
			return nil
		}
		requests := recordLostPool(r.decisions.States, p, r.ownership.ServicesOn(p.Spec.LoadBalancer.Name))
		for _, name := range r.decisions.States.AddDrainedPool(p.Spec.LoadBalancer.Name) {
			requests = append(requests, reconcile.Request{NamespacedName: cache.NamespacedName(name)})
		}
		return requests
	}
	name := client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	r.decisions.States.AddLostPool(name.String(), newLostPool(p))
	return []reconcile.Request{{NamespacedName: name}}
}

// recordLostPool records the loss of a pool for the Services and returns the known ones.
func recordLostPool(states *servicelb.States, p *v1alpha1.BackendPool, services []*corev1.Service) (known []reconcile.Request) {
	for _, s := range services {
		name := client.ObjectKeyFromObject(s)
		if states.AddLostPool(name.String(), newLostPool(p)) {
			known = append(known, reconcile.Request{NamespacedName: name})
		}
	}
	return known
}

func newLostPool(p *v1alpha1.BackendPool) servicelb.LostPool {
	return servicelb.LostPool{LoadBalancer: p.Spec.LoadBalancer.Name, Pool: p.Spec.PoolName}
}

func poolDeleted() predicate.Predicate {
	none := func(event.CreateEvent) bool { return false }
	return predicate.Funcs{CreateFunc: none, UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// balancedChanged drops updates that change neither desired state nor status.
func balancedChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Service)
		after, ok2 := u.ObjectNew.(*corev1.Service)
		if !ok1 || !ok2 {
			return false
		}
		return before.UID != after.UID || !reflect.DeepEqual(cache.ServiceOf(before), cache.ServiceOf(after)) ||
			!reflect.DeepEqual(before.Status.LoadBalancer, after.Status.LoadBalancer) || before.Spec.Type != after.Spec.Type ||
			ptr.Deref(before.Spec.LoadBalancerClass, "") != ptr.Deref(after.Spec.LoadBalancerClass, "") ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Annotations[metadata.DryRunAnnotation] != after.Annotations[metadata.DryRunAnnotation] || cache.HasFinalizer(before) != cache.HasFinalizer(after) ||
			cache.AllowsRemoval(before) != cache.AllowsRemoval(after) ||
			before.Annotations[metadata.WriteAgainAnnotation] != after.Annotations[metadata.WriteAgainAnnotation]
	}}
}

// watchNamespaces reconciles the Services of a namespace when its limits or grants change, or its labels if
// these place Services.
func (r *Reconciler) watchNamespaces(to *builder.Builder) *builder.Builder {
	byLabels := (servicelb.Settings{Configurations: r.options.Configurations}).ByNamespace()
	return to.Watches(&corev1.Namespace{}, k8s.MapHandler(r.servicesIn), builder.WithPredicates(r.namespaceChanged(byLabels)))
}

// namespaceChanged passes changes of limits and grants, and of labels if byLabels is set. A new namespace can have any: its
// Services may have been seen before. It reports invalid limits.
func (r *Reconciler) namespaceChanged(byLabels bool) predicate.Predicate {
	differ := func(before, after client.Object) bool {
		return byLabels && !maps.Equal(before.GetLabels(), after.GetLabels()) || !reflect.DeepEqual(limitsOf(before), limitsOf(after)) ||
			slices.ContainsFunc([]string{service.PublicIPAnnotation, service.GatewayLoadBalancersAnnotation}, func(grant string) bool {
				return before.GetAnnotations()[grant] != after.GetAnnotations()[grant]
			})
	}
	return predicate.Funcs{
		CreateFunc: func(c event.CreateEvent) bool {
			r.reportBounds(c.Object)
			return !c.IsInInitialList && differ(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Object.GetName()}}, c.Object)
		},
		UpdateFunc: func(u event.UpdateEvent) bool {
			if !reflect.DeepEqual(limitsOf(u.ObjectOld), limitsOf(u.ObjectNew)) {
				r.reportBounds(u.ObjectNew)
			}
			return differ(u.ObjectOld, u.ObjectNew)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func limitsOf(ns client.Object) service.NamespaceSettings {
	return service.ParseNamespaceSettings(ns.GetName(), ns.GetAnnotations())
}

func (r *Reconciler) reportBounds(ns client.Object) {
	for _, text := range limitsOf(ns).InvalidMessages() {
		r.cfg.Log.Warn(text)
		r.cfg.Events.Add(ns, corev1.EventTypeWarning, EventInvalidBound, humanize.FormatMessage(text, humanize.MaxMessage))
	}
}

func (r *Reconciler) servicesIn(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, s := range cache.List[corev1.Service](r.view.Services, cache.ServicesBalanced, "") {
		if s.Namespace == obj.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}

// HandleAttempt requeues the Services that wait for a pool.
func (r *Reconciler) HandleAttempt(p *v1alpha1.BackendPool, report updater.Report) {
	if r.deployer == nil || !report.InSync {
		return
	}
	for _, s := range r.ownership.ServicesOn(p.Spec.LoadBalancer.Name) {
		name := client.ObjectKeyFromObject(s)
		if r.decisions.States.AddFilledPool(name.String(), report.Pool) {
			r.queue.Add(name)
		}
	}
}

// HandleEmpty requeues the Services of a pool without members, which are not Programmed.
func (r *Reconciler) HandleEmpty(p *v1alpha1.BackendPool) {
	if r.deployer == nil || !r.ownership.IsCreatedByWeir(p) {
		return
	}
	for _, s := range r.ownership.ServicesOn(p.Spec.LoadBalancer.Name) {
		if ref := p.Spec.ServiceRef; ref == nil || s.Namespace == p.Namespace && s.Name == ref.Name {
			r.queue.Add(client.ObjectKeyFromObject(s))
		}
	}
}

// recheckPool rechecks a pool that was missing: its load balancer now exists.
func (store serviceStatusStore) recheckPool(p *v1alpha1.BackendPool) {
	store.pools.RecheckMissing(p, time.Now())
}

// HandleDeletion cleans up the Service of a deleted BackendPool if the Service was deleted while no process was
// watching. The status, which only Weir writes, identifies the Service.
func (r *Reconciler) HandleDeletion(p *v1alpha1.BackendPool) {
	uid := types.UID(r.ownership.RecordedPurpose(p))
	if r.deployer == nil || uid == "" || p.Spec.ServiceRef == nil || p.DeletionTimestamp == nil || !r.ownership.IsCreatedByWeir(p) {
		return
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	if cache.Get[corev1.Service](r.view.Services, name.String()) != nil ||
		slices.ContainsFunc(r.ExposedServices(), func(r loadbalancer.ExposedService) bool { return r.Owner == service.OwnerNameOf(string(uid)) }) {
		return // it exists, or another Service has its name
	}
	if r.decisions.States.AddGone(name.String(), string(uid), p.Spec.LoadBalancer.Name) {
		r.queue.Add(name)
	}
}
