// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/poolschedule"
)

func (r *Reconciler) servicesOnNode(_ context.Context, obj client.Object) []reconcile.Request {
	seen := map[poolschedule.ServiceName]struct{}{}
	var requests []reconcile.Request
	for _, s := range view.List[discoveryv1.EndpointSlice](r.view.Slices, view.SlicesByNode, obj.GetName()) {
		name := view.ServiceOfSlice(s)
		if _, ok := seen[name]; ok {
			continue
		}
		seen[name] = struct{}{}
		requests = append(requests, r.ifBound(name)...)
	}
	return requests
}

func (r *Reconciler) poolsOfNode(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range view.List[v1alpha1.BackendPool](r.view.Pools, view.PoolsOfNodes, "") {
		selector, err := backendpool.Selector(p)
		if err == nil && selector != nil && selector.Matches(labels.Set(obj.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

func (r *Reconciler) nodeChanged() predicate.Predicate { return workqueue.Changed(r.view.NodeDiffers) }

func (r *Reconciler) nodeOrLabelsChanged() predicate.Predicate {
	return workqueue.Changed(r.view.NodeOrLabelsDiffer)
}
