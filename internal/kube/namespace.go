// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/service"
)

// byNamespace reports whether the labels of namespaces say where Services belong. Otherwise
// no namespace is read, and Weir needs no right to.
func (b Balancing) byNamespace() bool {
	return slices.ContainsFunc(b.Several, func(c service.Configuration) bool { return c.Namespaces != nil })
}

// watchNamespaces has a change of the labels of a namespace ask its Services again.
func (c *Cluster) watchNamespaces(to *builder.Builder) *builder.Builder {
	if !c.balancing.byNamespace() {
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

// namespaceLabels returns the labels of a namespace, if they matter. That it is not known yet
// is an error: to take that for no labels would put a Service where it does not belong.
func (c *Cluster) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	if !c.balancing.byNamespace() {
		return nil, nil
	}
	ns := &corev1.Namespace{}
	if err := c.cached.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil, fmt.Errorf("labels of namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// selection is what the selectors of the load balancers say of a Service, a letter each:
// while that is the same, its labels do not move it.
func (c *Cluster) selection(labels, namespace map[string]string) string {
	var said []byte
	for _, conf := range c.balancing.Several {
		for _, by := range []struct {
			selects service.Selector
			labels  map[string]string
		}{{conf.Services, labels}, {conf.Namespaces, namespace}} {
			switch {
			case by.selects == nil:
				said = append(said, '-')
			case by.selects(by.labels):
				said = append(said, 'y')
			default:
				said = append(said, 'n')
			}
		}
	}
	return string(said)
}
