// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Backend is a node port of a Service that can receive connections.
type Backend struct {
	Service  types.NamespacedName
	Protocol corev1.Protocol
	NodePort int32
	// HealthCheckNodePort is that of a Service with externalTrafficPolicy Local; else 0.
	HealthCheckNodePort int32
}

// refError is why a backend reference is not resolved.
type refError struct {
	reason gatewayv1.RouteConditionReason
	text   string
}

// Cluster returns the objects that routes refer to.
type Cluster interface {
	// Service returns a Service, or nil.
	Service(name types.NamespacedName) *corev1.Service
	// IsPermitted reports whether a ReferenceGrant permits the reference.
	IsPermitted(r Route, service types.NamespacedName) bool
	// IsNamespaceSelected reports whether the labels of a namespace match.
	IsNamespaceSelected(namespace string, from gatewayv1.RouteNamespaces) bool
}

func (r Route) protocol() corev1.Protocol {
	if r.Kind == KindUDPRoute {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// resolveBackend returns the node port of a backend reference.
func (r Route) resolveBackend(c Cluster, ref gatewayv1.BackendRef) (Backend, *refError) {
	name, ok := r.ServiceOf(ref)
	if !ok {
		return Backend{}, &refError{gatewayv1.RouteReasonInvalidKind, fmt.Sprintf("backend %s is a %s: use a Service", ref.Name, ptr.Deref(ref.Kind, KindService))}
	}
	if name.Namespace != r.Object.GetNamespace() && !c.IsPermitted(r, name) {
		return Backend{}, &refError{gatewayv1.RouteReasonRefNotPermitted, fmt.Sprintf("no ReferenceGrant in namespace %s permits this route to use Service %s", name.Namespace, name.Name)}
	}
	s := c.Service(name)
	if s == nil {
		return Backend{}, &refError{gatewayv1.RouteReasonBackendNotFound, fmt.Sprintf("Service %s does not exist", name)}
	}
	for _, p := range s.Spec.Ports {
		if ref.Port == nil || p.Port != *ref.Port || p.Protocol != r.protocol() {
			continue
		}
		if p.NodePort == 0 {
			return Backend{}, &refError{gatewayv1.RouteReasonUnsupportedValue, fmt.Sprintf("port %d of Service %s has no node port, to which the load balancer sends: use type NodePort", p.Port, name)}
		}
		b := Backend{Service: name, Protocol: p.Protocol, NodePort: p.NodePort}
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			if s.Spec.HealthCheckNodePort == 0 { // nodes without endpoints would get connections, and drop them
				return Backend{}, &refError{gatewayv1.RouteReasonUnsupportedValue, fmt.Sprintf("Service %s has externalTrafficPolicy Local and no healthCheckNodePort, so no probe finds its nodes: use externalTrafficPolicy Cluster, or type LoadBalancer", name)}
			}
			b.HealthCheckNodePort = s.Spec.HealthCheckNodePort
		}
		return b, nil
	}
	return Backend{}, &refError{gatewayv1.RouteReasonBackendNotFound, fmt.Sprintf("Service %s has no %s port %d", name, r.protocol(), ptr.Deref(ref.Port, 0))}
}

// resolution is the result of the backends of a route.
type resolution struct {
	// serving is the backend that receives all connections; nil if none is valid.
	serving *Backend
	// failed is why the first invalid backend is not resolved; nil if all are.
	failed *refError
	// ignored is the number of other valid backends with a weight.
	ignored int
}

// resolve selects the backend with the greatest weight, the first of equal ones: a rule of Azure Load Balancer has one
// backend port.
func (r Route) resolve(c Cluster) (res resolution) {
	greatest := int32(0)
	for _, ref := range r.Backends() {
		b, err := r.resolveBackend(c, ref)
		weight := ptr.Deref(ref.Weight, 1)
		switch {
		case err != nil && res.failed == nil:
			res.failed = err
		case err != nil || weight == 0:
		case weight > greatest:
			if res.serving != nil {
				res.ignored++
			}
			res.serving, greatest = &b, weight
		default:
			res.ignored++
		}
	}
	return res
}
