// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/poolupdate"
)

// servicesOnNode maps a node to the Services that have an endpoint on it.
func (c *Cluster) servicesOnNode(_ context.Context, obj client.Object) []reconcile.Request {
	seen := map[poolupdate.ServiceName]struct{}{}
	var requests []reconcile.Request
	for _, s := range list[discoveryv1.EndpointSlice](c.snap.slices, slicesByNode, obj.GetName()) {
		name := serviceOfSlice(s)
		if _, ok := seen[name]; ok {
			continue
		}
		seen[name] = struct{}{}
		requests = append(requests, c.ifBound(name)...)
	}
	return requests
}

// poolsOfNode maps a node to the BackendPools whose selector matches it. An update is
// mapped by its old and its new labels.
func (c *Cluster) poolsOfNode(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsOfNodes, "") {
		selector, err := backendpool.Selector(p)
		if err == nil && selector != nil && selector.Matches(labels.Set(obj.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// nodeChanged drops updates that change no address and no exclusion: a heartbeat, a
// condition, a label that excludes nobody.
func (c *Cluster) nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Node)
		after, ok2 := u.ObjectNew.(*corev1.Node)
		return ok1 && ok2 && c.nodeDiffers(before, after)
	}}
}

// nodeOrLabelsChanged lets changes of labels through as well, which select nodes.
func (c *Cluster) nodeOrLabelsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Node)
		after, ok2 := u.ObjectNew.(*corev1.Node)
		return ok1 && ok2 && (!maps.Equal(before.Labels, after.Labels) || c.nodeDiffers(before, after))
	}}
}

func (c *Cluster) nodeDiffers(before, after *corev1.Node) bool {
	a, b := c.snap.nodeOf(before), c.snap.nodeOf(after)
	return a.Excluded != b.Excluded || a.Draining != b.Draining || !a.AnnouncedAt.Equal(b.AnnouncedAt) || before.UID != after.UID || !slices.Equal(a.IPs, b.IPs)
}
