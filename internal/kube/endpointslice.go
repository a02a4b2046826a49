// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/poolupdate"
)

// servicesOfSlice maps a slice to its Service. An update is mapped by its old and its
// new label, so a slice that moves is taken from one Service and given to the other.
func (c *Cluster) servicesOfSlice(_ context.Context, obj client.Object) []reconcile.Request {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	return c.ifBound(serviceOfSlice(s))
}

// ifBound is the request of a Service that a BackendPool refers to. Nobody needs to
// hear of others: a BackendPool that comes later is reconciled for itself.
func (c *Cluster) ifBound(name poolupdate.ServiceName) []reconcile.Request {
	if name.Name == "" || len(c.snap.poolsOf(name)) == 0 {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: name.Namespace, Name: name.Name}}}
}

// sliceChanged drops updates that change no endpoint. One that leaves all members as
// they are passes: people are told that it starts another attempt where one failed.
func sliceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*discoveryv1.EndpointSlice)
		after, ok2 := u.ObjectNew.(*discoveryv1.EndpointSlice)
		if !ok1 || !ok2 {
			return false
		}
		// The address type of a slice cannot change, but that of its name can: after a
		// lost watch another object arrives as an update.
		// The generation tells of what the cache has left out, such as a pod's own address.
		return before.UID != after.UID || serviceOfSlice(before) != serviceOfSlice(after) ||
			before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Endpoints, after.Endpoints)
	}}
}
