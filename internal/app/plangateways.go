// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/offline"
)

// checkGateways returns the errors of invalid objects of Gateway API. For objects that Weir does not serve they are only
// warnings: another controller may know newer fields.
func checkGateways(o *offline.Objects) (failed []error, warnings []string) {
	classes, gateways := map[gatewayv1.ObjectName]bool{"": true}, map[types.NamespacedName]bool{}
	for _, obj := range o.Gateways {
		if class, ok := obj.(*gatewayv1.GatewayClass); ok && class.Spec.ControllerName == routing.ControllerName {
			classes[gatewayv1.ObjectName(class.Name)] = true
		}
	}
	for _, obj := range o.Gateways {
		if gw, ok := obj.(*gatewayv1.Gateway); ok && classes[gw.Spec.GatewayClassName] {
			gateways[client.ObjectKeyFromObject(gw)] = true
		}
	}
	for _, invalid := range o.InvalidGateways {
		if isServed(invalid.Object, gateways) {
			failed = append(failed, invalid.Err)
		} else {
			warnings = append(warnings, invalid.Err.Error()+": ignored, because Weir does not serve it")
		}
	}
	return failed, warnings
}

// isServed reports whether Weir serves an object, or whether this cannot be decided for lack of a field.
func isServed(obj client.Object, gateways map[types.NamespacedName]bool) bool {
	switch x := obj.(type) {
	case *gatewayv1.GatewayClass:
		return x.Spec.ControllerName == routing.ControllerName || x.Spec.ControllerName == ""
	case *gatewayv1.Gateway:
		return gateways[client.ObjectKeyFromObject(x)]
	}
	route, isRoute := routing.RouteOf(obj)
	if !isRoute { // a ReferenceGrant is for all routes
		return len(gateways) > 0
	}
	return len(route.Parents) == 0 || slices.ContainsFunc(route.Parents, func(p gatewayv1.ParentReference) bool {
		name, ok := route.GatewayOf(p)
		return ok && gateways[name]
	})
}
