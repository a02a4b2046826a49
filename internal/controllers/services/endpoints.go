// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
)

// serviceOfSlice maps a slice to its Service if Weir manages its load balancer: the status reports whether
// endpoints take traffic.
func serviceOfSlice(v *cache.Snapshot) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		slice, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok {
			return nil
		}
		of := cache.ServiceOfSlice(slice)
		s := cache.Get[corev1.Service](v.Services, metadata.Key(of.Namespace, of.Name))
		if s == nil || !v.Serving.IsManaged(s) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(s)}}
	}
}

// trafficChanged passes events in which a slice starts or stops having endpoints that take traffic. Their number
// and nodes concern BackendPools only.
func trafficChanged() predicate.Predicate {
	takes := func(obj client.Object) bool {
		s, ok := obj.(*discoveryv1.EndpointSlice)
		return ok && cache.TakesTraffic(s)
	}
	return predicate.Funcs{
		CreateFunc: func(c event.CreateEvent) bool { return !c.IsInInitialList && takes(c.Object) },
		UpdateFunc: func(u event.UpdateEvent) bool { return takes(u.ObjectOld) != takes(u.ObjectNew) },
		DeleteFunc: func(d event.DeleteEvent) bool { return takes(d.Object) },
	}
}
