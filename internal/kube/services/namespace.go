// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/servicelb"
)

// watchNamespaces has a change of the labels of a namespace ask its Services again, where they say
// where Services belong. Otherwise Weir needs no right to read them.
func (r *Reconciler) watchNamespaces(to *builder.Builder) *builder.Builder {
	if !(servicelb.Settings{Several: r.options.Several}).ByNamespace() {
		return to
	}
	return to.Watches(&corev1.Namespace{}, workqueue.Mapped(r.servicesIn), builder.WithPredicates(namespaceRelabelled()))
}

// namespaceRelabelled lets changes of labels through alone: a new namespace has no Services
// that would not come by themselves.
func namespaceRelabelled() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(u event.UpdateEvent) bool { return !maps.Equal(u.ObjectOld.GetLabels(), u.ObjectNew.GetLabels()) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// servicesIn maps a namespace to those of its Services that have a load balancer of Weir's.
func (r *Reconciler) servicesIn(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, s := range view.List[corev1.Service](r.view.Services, view.ServicesBalanced, "") {
		if s.Namespace == obj.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}
