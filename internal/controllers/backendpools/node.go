// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/pool/schedule"
)

// withDuplicates returns a node and its duplicates. Which of them is a member depends on all.
func (r *Reconciler) withDuplicates(obj client.Object) []*corev1.Node {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return nil
	}
	return append(r.view.DuplicateNodes(n), n)
}

func (r *Reconciler) servicesOnNode(_ context.Context, obj client.Object) []reconcile.Request {
	seen := map[schedule.ServiceName]struct{}{}
	var requests []reconcile.Request
	for _, n := range r.withDuplicates(obj) {
		for _, s := range cache.List[discoveryv1.EndpointSlice](r.view.Slices, cache.SlicesByNode, n.Name) {
			name := cache.ServiceOfSlice(s)
			if _, ok := seen[name]; ok {
				continue
			}
			seen[name] = struct{}{}
			requests = append(requests, r.requestIfBound(name)...)
		}
	}
	return requests
}

func (r *Reconciler) poolsOfNode(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	nodes := r.withDuplicates(obj)
	for _, p := range cache.List[v1alpha1.BackendPool](r.view.Pools, cache.PoolsOfNodes, "") {
		if !r.hasPermission(p) { // no node matters to it, and any namespace may have thousands
			continue
		}
		selector, err := backendpool.NodeSelector(p)
		matches := func(n *corev1.Node) bool { return selector.Matches(labels.Set(n.Labels)) }
		if err == nil && selector != nil && slices.ContainsFunc(nodes, matches) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

func (r *Reconciler) nodeChanged() predicate.Predicate {
	return k8s.UpdatePredicate(r.view.NodeDiffers)
}

func (r *Reconciler) nodeOrLabelsChanged() predicate.Predicate {
	return k8s.UpdatePredicate(r.view.NodeOrLabelsDiffer)
}
