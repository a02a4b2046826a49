// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Route is a TCPRoute, UDPRoute or TLSRoute.
type Route struct {
	// Object is the route itself.
	Object  client.Object
	Kind    gatewayv1.Kind
	Parents []gatewayv1.ParentReference
	// Statuses are status.parents.
	Statuses []gatewayv1.RouteParentStatus
}

// RouteOf returns the Route of a TCPRoute, UDPRoute or TLSRoute; false for other objects.
func RouteOf(obj client.Object) (Route, bool) {
	switch r := obj.(type) {
	case *gatewayv1.TCPRoute:
		return Route{Object: r, Kind: KindTCPRoute, Parents: r.Spec.ParentRefs, Statuses: r.Status.Parents}, true
	case *gatewayv1.UDPRoute:
		return Route{Object: r, Kind: KindUDPRoute, Parents: r.Spec.ParentRefs, Statuses: r.Status.Parents}, true
	case *gatewayv1.TLSRoute:
		return Route{Object: r, Kind: KindTLSRoute, Parents: r.Spec.ParentRefs, Statuses: r.Status.Parents}, true
	}
	return Route{}, false
}

// Backends returns the backends of all rules.
func (r Route) Backends() (refs []gatewayv1.BackendRef) {
	switch o := r.Object.(type) {
	case *gatewayv1.TCPRoute:
		for i := range o.Spec.Rules {
			refs = append(refs, o.Spec.Rules[i].BackendRefs...)
		}
	case *gatewayv1.UDPRoute:
		for i := range o.Spec.Rules {
			refs = append(refs, o.Spec.Rules[i].BackendRefs...)
		}
	case *gatewayv1.TLSRoute:
		for i := range o.Spec.Rules {
			refs = append(refs, o.Spec.Rules[i].BackendRefs...)
		}
	}
	return refs
}

// Kinds of Gateway API.
const (
	KindGateway  gatewayv1.Kind = "Gateway"
	KindTCPRoute gatewayv1.Kind = "TCPRoute"
	KindUDPRoute gatewayv1.Kind = "UDPRoute"
	KindTLSRoute gatewayv1.Kind = "TLSRoute"
	KindService  gatewayv1.Kind = "Service"
)

// GatewayOf returns the Gateway of a parent reference of a route; false if it is another object.
func (r Route) GatewayOf(p gatewayv1.ParentReference) (types.NamespacedName, bool) {
	if ptr.Deref(p.Group, gatewayv1.GroupName) != gatewayv1.GroupName || ptr.Deref(p.Kind, KindGateway) != KindGateway {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(ptr.Deref(p.Namespace, gatewayv1.Namespace(r.Object.GetNamespace()))), Name: string(p.Name)}, true
}

// ServiceOf returns the Service of a backend reference of a route; false if it is another object.
func (r Route) ServiceOf(b gatewayv1.BackendRef) (types.NamespacedName, bool) {
	if ptr.Deref(b.Group, "") != "" || ptr.Deref(b.Kind, KindService) != KindService {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(ptr.Deref(b.Namespace, gatewayv1.Namespace(r.Object.GetNamespace()))), Name: string(b.Name)}, true
}

// ComparePrecedence orders objects as Gateway API resolves conflicts: the oldest first, then by namespace and name.
func ComparePrecedence(a, b client.Object) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

// IsGranted reports whether a ReferenceGrant in the namespace of a Service permits a reference by a route.
func IsGranted(g *gatewayv1.ReferenceGrant, r Route, service types.NamespacedName) bool {
	from, to := false, false
	for _, f := range g.Spec.From {
		from = from || f.Group == gatewayv1.GroupName && f.Kind == r.Kind && string(f.Namespace) == r.Object.GetNamespace()
	}
	for _, t := range g.Spec.To {
		to = to || t.Group == "" && t.Kind == KindService && (t.Name == nil || *t.Name == "" || string(*t.Name) == service.Name)
	}
	return g.Namespace == service.Namespace && from && to
}
