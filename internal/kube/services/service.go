// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/servicelb"
)

// Reconcile has Azure hold what a Service wants, and says how far that is.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	again, err := r.decide.Reconcile(ctx, req.String(), time.Now())
	if errors.Is(err, servicelb.ErrGone) {
		return reconcile.Result{}, nil
	}
	return workqueue.Result(ctx, err, again)
}

// Ensured is told what came of a request. It may be called from any goroutine.
func (r *Reconciler) Ensured(result balancer.Result) {
	if r.decide.States.Ensured(result) {
		r.queue.Add(view.NamespacedName(result.Service))
	}
}

// balancedService maps a Service to itself, if it has or had a load balancer of Weir's.
func (r *Reconciler) balancedService(_ context.Context, obj client.Object) []reconcile.Request {
	name := client.ObjectKeyFromObject(obj)
	s, ok := obj.(*corev1.Service)
	_, known := r.decide.States.Known(name.String())
	if !ok || !r.view.Serving.Ours(s) && !r.view.Serving.Held(s) && !known {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// servicesOfPool maps a BackendPool to its Service: it may have filled the pool that this needs. One of
// nodes is mapped to all Services on its load balancer.
func (r *Reconciler) servicesOfPool(_ context.Context, obj client.Object) []reconcile.Request {
	p, ok := obj.(*v1alpha1.BackendPool)
	if !ok {
		return nil
	}
	if p.Spec.ServiceRef == nil {
		if !r.own.Made(p) { // whoever writes one in a namespace of theirs has nobody else's Services looked at
			return nil
		}
		return lose(r.decide.States, p, r.own.ServedBy(p.Spec.LoadBalancer.Name))
	}
	name := client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	r.decide.States.PoolLost(name.String(), lostPool(p))
	return []reconcile.Request{{NamespacedName: name}}
}

// lose brings to Services that a BackendPool is gone, or its pool, and returns those that are known.
func lose(states *servicelb.States, p *v1alpha1.BackendPool, services []*corev1.Service) (known []reconcile.Request) {
	for _, s := range services {
		name := client.ObjectKeyFromObject(s)
		if states.PoolLost(name.String(), lostPool(p)) {
			known = append(known, reconcile.Request{NamespacedName: name})
		}
	}
	return known
}

func lostPool(p *v1alpha1.BackendPool) servicelb.LostPool {
	return servicelb.LostPool{LoadBalancer: p.Spec.LoadBalancer.Name, Pool: p.Spec.PoolName}
}

// poolGoes lets the end of a BackendPool through alone.
func poolGoes() predicate.Predicate {
	none := func(event.CreateEvent) bool { return false }
	return predicate.Funcs{CreateFunc: none, UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// balancedChanged drops updates that change nothing of what is wanted or shown.
func balancedChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Service)
		after, ok2 := u.ObjectNew.(*corev1.Service)
		if !ok1 || !ok2 {
			return false
		}
		return before.UID != after.UID || !reflect.DeepEqual(view.ServiceOf(before), view.ServiceOf(after)) ||
			!reflect.DeepEqual(before.Status.LoadBalancer, after.Status.LoadBalancer) || before.Spec.Type != after.Spec.Type ||
			ptr.Deref(before.Spec.LoadBalancerClass, "") != ptr.Deref(after.Spec.LoadBalancerClass, "") ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Annotations[view.DryRunAnnotation] != after.Annotations[view.DryRunAnnotation] || view.HasFinalizer(before) != view.HasFinalizer(after) ||
			view.AllowsRemoval(before) != view.AllowsRemoval(after) ||
			before.Annotations[view.WriteAgainAnnotation] != after.Annotations[view.WriteAgainAnnotation]
	}}
}
