// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// azureAnnotations is how all annotations begin that speak of Azure load balancers.
const azureAnnotations = "service.beta.kubernetes.io/"

// wishing converts a Service.
func wishing(s *corev1.Service) service.Service {
	out := service.Service{
		Namespace: s.Namespace, Name: s.Name, UID: string(s.UID), Labels: s.Labels,
		Annotations:         map[string]string{},
		Local:               s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		HealthCheckNodePort: s.Spec.HealthCheckNodePort,
		ClientIP:            s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		LoadBalancerIP:      s.Spec.LoadBalancerIP,
		SourceRanges:        s.Spec.LoadBalancerSourceRanges,
	}
	for name, value := range s.Annotations {
		if strings.HasPrefix(name, azureAnnotations) {
			out.Annotations[name] = value
		}
	}
	for _, family := range s.Spec.IPFamilies {
		out.Families = append(out.Families, lb.Family(family))
	}
	if len(out.Families) == 0 { // an API server fills them in
		out.Families = []lb.Family{lb.IPv4}
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, service.Port{
			Name: p.Name, Protocol: string(p.Protocol), AppProtocol: orElse(p.AppProtocol, ""), Port: p.Port, NodePort: p.NodePort,
		})
	}
	return out
}

// ownAnnotations are those of Weir that stay in the cache.
var ownAnnotations = []string{PlaceAnnotation, GroupsAnnotation, ClassAnnotation, AllowRemovalAnnotation, DryRunAnnotation, WriteAgainAnnotation}

// stripBalanced keeps of a Service of type LoadBalancer what its load balancer is made from.
func stripBalanced(s *corev1.Service) {
	annotations := map[string]string{}
	for name, value := range s.Annotations {
		if strings.HasPrefix(name, azureAnnotations) || slices.Contains(ownAnnotations, name) {
			annotations[name] = value
		}
	}
	finalizers := s.Finalizers
	s.ObjectMeta = identity(s.ObjectMeta, s.Labels)
	s.Annotations, s.Finalizers = annotations, finalizers
	spec := s.Spec
	s.Spec = corev1.ServiceSpec{
		Type: spec.Type, LoadBalancerClass: spec.LoadBalancerClass, Ports: spec.Ports, IPFamilies: spec.IPFamilies,
		ExternalTrafficPolicy: spec.ExternalTrafficPolicy, HealthCheckNodePort: spec.HealthCheckNodePort,
		SessionAffinity: spec.SessionAffinity, LoadBalancerIP: spec.LoadBalancerIP,
		LoadBalancerSourceRanges: spec.LoadBalancerSourceRanges,
	}
	s.Status = corev1.ServiceStatus{LoadBalancer: s.Status.LoadBalancer, Conditions: onlyContested(s.Status.Conditions)}
}
