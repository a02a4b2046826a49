// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// newService returns a Gateway as a Service with the rules as ports. If the Gateway is not managed, the load balancer
// is released.
func newService(gw *gatewayv1.Gateway, managed bool, class string, rules []routing.Rule) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metadata.Identity(gw.ObjectMeta, gw.Labels), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}}
	s.Name, s.ResourceVersion = cache.GatewayServiceName(gw.Name), ""
	if controllerutil.ContainsFinalizer(gw, metadata.ServiceFinalizer) {
		s.Finalizers = []string{metadata.ServiceFinalizer}
	}
	s.Annotations = annotationsOf(gw)
	if managed {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		if class != "" {
			s.Spec.LoadBalancerClass = &class
		}
	}
	setFamilies(s, gw)
	for _, rule := range rules {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: string(rule.Listener), Protocol: rule.Protocol, Port: rule.Port, TargetPort: intstr.FromInt32(rule.NodePort), NodePort: rule.NodePort,
		})
		if rule.HealthCheckNodePort != 0 {
			s.Annotations[cache.HealthCheckAnnotation(rule.Protocol, rule.Port)] = strconv.Itoa(int(rule.HealthCheckNodePort))
		}
	}
	for _, address := range gw.Status.Addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: address.Value})
	}
	s.Status.Conditions = cache.FilterConditions(gw.Status.Conditions, recordedConditions...)
	return s
}

// recordedConditions are conditions of Services that Gateways have, too. They are read after a restart.
var recordedConditions = []string{metadata.ConditionPrivateLink, metadata.ConditionConflict}

// keepSpec gives an invalid Gateway the spec before, without ports that its routes no longer have. If its restriction
// changes, it is rejected instead: the security group is then closed first.
func keepSpec(s, before *corev1.Service) {
	wanted := s.Spec.Ports
	if hasOtherRestriction(s, before) {
		rejectSpec(s)
	} else {
		s.Annotations = before.Annotations
	}
	s.Spec = *before.Spec.DeepCopy()
	s.Spec.Ports = slices.DeleteFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return !slices.ContainsFunc(wanted, func(w corev1.ServicePort) bool {
			return w.Protocol == p.Protocol && w.Port == p.Port && w.NodePort == p.NodePort
		})
	})
}

// hasOtherRestriction reports whether a Gateway restricts its clients other than before.
func hasOtherRestriction(s, before *corev1.Service) bool {
	restriction := service.RestrictionOf(cache.ServiceOf(s))
	return !restriction.IsOpen() && !reflect.DeepEqual(restriction, service.RestrictionOf(cache.ServiceOf(before)))
}

// rejectSpec makes the spec of an invalid Gateway invalid for load balancers, too, so that what it has in Azure does
// not change: after a restart its former spec is unknown.
func rejectSpec(s *corev1.Service) { s.Annotations[service.IPv4] = "the Gateway is not accepted" }

// unsupported are annotations of Services that need floating IP.
var unsupported = []string{service.HAPorts, service.AdditionalIPs}

// unsupportedText returns why the annotations of a Gateway are rejected; empty if they are not.
func unsupportedText(gw *gatewayv1.Gateway) string {
	annotations := annotationsOf(gw)
	for _, name := range unsupported {
		if value := strings.TrimSpace(annotations[name]); value != "" && !strings.EqualFold(value, "false") {
			return fmt.Sprintf("annotation %s has no effect on a Gateway, because its rules have no floating IP: remove the annotation, or use a Service", name)
		}
	}
	return ""
}

// annotationsOf returns the annotations of Weir and Azure. Nodes accept connections at node ports only without floating
// IP.
func annotationsOf(gw *gatewayv1.Gateway) map[string]string {
	annotations := map[string]string{}
	for name, value := range gw.Annotations {
		if cache.IsKept(name) {
			annotations[name] = value
		}
	}
	if gw.Spec.Infrastructure != nil {
		for name, value := range gw.Spec.Infrastructure.Annotations {
			if cache.IsKept(string(name)) && strings.HasPrefix(string(name), "service.beta.kubernetes.io/") {
				annotations[string(name)] = string(value)
			}
		}
	}
	annotations[service.DisableFloatingIP] = "true"
	return annotations
}

// setFamilies requests the addresses of a Gateway, and otherwise an IPv4 address.
func setFamilies(s *corev1.Service, gw *gatewayv1.Gateway) {
	requested, err := routing.RequestedAddresses(gw)
	if err != nil {
		requested = nil
	}
	for _, ip := range requested {
		if ip.Is4() {
			s.Annotations[service.IPv4] = ip.String()
			s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPv4Protocol)
		} else {
			s.Annotations[service.IPv6] = ip.String()
			s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPv6Protocol)
		}
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
}

// isInternal reports whether the Gateway has private addresses.
func isInternal(gw *gatewayv1.Gateway) bool { return annotationsOf(gw)[service.Internal] == "true" }

// usesNodePorts reports whether the load balancer of a Service itself forwards to its node ports.
func usesNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Annotations[service.DisableFloatingIP] == "true"
}
