// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/servicelb"
)

// watchesNamespaces reports whether the labels of namespaces say where Services belong. Otherwise Weir
// needs no right to read them.
func (c *Cluster) watchesNamespaces() bool {
	return servicelb.Settings{Several: c.balancing.Several}.ByNamespace()
}

// watchNamespaces has a change of the labels of a namespace ask its Services again.
func (c *Cluster) watchNamespaces(to *builder.Builder) *builder.Builder {
	if !c.watchesNamespaces() {
		return to
	}
	return to.Watches(&corev1.Namespace{}, mapped(c.servicesIn), builder.WithPredicates(namespaceRelabelled()))
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
func (c *Cluster) servicesIn(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, s := range list[corev1.Service](c.snap.services, servicesBalanced, "") {
		if s.Namespace == obj.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}
