// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func serviceKind(gvk schemaKind) *resourceKind {
	return &resourceKind{
		gvk: gvk, resource: "services", shortNames: []string{"svc"}, namespaced: true, status: true, allowsUnconditional: true,
		createsOnUpdate: true, returnsDeleted: true, validateName: validation.NameIsDNSLabel,
		setDefaults: typedObject(defaultService), prepare: typedUpdate(prepareService), allocate: admitService,
		selectableFields: func(o object) fields.Set {
			s := o.(*corev1.Service)
			return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
		},
		clearStatus:  typedObject(func(s *corev1.Service) { s.Status = corev1.ServiceStatus{} }),
		retainStatus: typedUpdate(func(s, before *corev1.Service) { before.Status.DeepCopyInto(&s.Status) }),
		retainSpec:   typedUpdate(func(s, before *corev1.Service) { before.Spec.DeepCopyInto(&s.Spec) }),
	}
}

func defaultService(s *corev1.Service) {
	sp := &s.Spec
	if sp.Type == "" {
		sp.Type = corev1.ServiceTypeClusterIP
	}
	defaultAffinity(sp)
	for i := range sp.Ports {
		p := &sp.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if isExternal(sp) && sp.ExternalTrafficPolicy == "" {
		sp.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if sp.InternalTrafficPolicy == nil && sp.Type != corev1.ServiceTypeExternalName {
		sp.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if sp.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	if sp.AllocateLoadBalancerNodePorts == nil {
		sp.AllocateLoadBalancerNodePorts = new(true)
	}
	for i := range s.Status.LoadBalancer.Ingress {
		if in := &s.Status.LoadBalancer.Ingress[i]; in.IP != "" && in.IPMode == nil {
			in.IPMode = new(corev1.LoadBalancerIPModeVIP)
		}
	}
}

func defaultAffinity(sp *corev1.ServiceSpec) {
	switch sp.SessionAffinity {
	case "":
		sp.SessionAffinity = corev1.ServiceAffinityNone
		sp.SessionAffinityConfig = nil
	case corev1.ServiceAffinityNone:
		sp.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := sp.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			sp.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
}

// prepareService clears unchanged fields that the new type does not use, and retains allocated
// values.
func prepareService(s, before *corev1.Service) {
	if before == nil {
		return
	}
	sp, old := &s.Spec, &before.Spec
	retainAllocated(sp, old)
	if old.Type != corev1.ServiceTypeExternalName && sp.Type == corev1.ServiceTypeExternalName {
		dropAddresses(sp, old)
	}
	if hasNodePorts(old) && !hasNodePorts(sp) && samePorts(sp, old) {
		for i := range sp.Ports {
			sp.Ports[i].NodePort = 0
		}
	}
	if hasHealthCheckPort(old) && !hasHealthCheckPort(sp) && sp.HealthCheckNodePort == old.HealthCheckNodePort {
		sp.HealthCheckNodePort = 0
	}
	if old.Type == corev1.ServiceTypeLoadBalancer && sp.Type != corev1.ServiceTypeLoadBalancer {
		if equality.Semantic.DeepEqual(sp.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts) {
			sp.AllocateLoadBalancerNodePorts = nil
		}
		if equality.Semantic.DeepEqual(sp.LoadBalancerClass, old.LoadBalancerClass) {
			sp.LoadBalancerClass = nil
		}
	}
	if isExternal(old) && !isExternal(sp) && sp.ExternalTrafficPolicy == old.ExternalTrafficPolicy {
		sp.ExternalTrafficPolicy = ""
	}
	if sp.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func retainAllocated(sp, old *corev1.ServiceSpec) {
	if sp.Type != corev1.ServiceTypeExternalName && old.Type != corev1.ServiceTypeExternalName && sp.ClusterIP == "" {
		sp.ClusterIP, sp.ClusterIPs = old.ClusterIP, slices.Clone(old.ClusterIPs)
	}
	if hasNodePorts(sp) && hasNodePorts(old) {
		given := map[string]int32{}
		for _, p := range old.Ports {
			given[portKey(p)] = p.NodePort
		}
		for i := range sp.Ports {
			if p := &sp.Ports[i]; p.NodePort == 0 && !isNodePortUsed(sp, given[portKey(*p)]) {
				p.NodePort = given[portKey(*p)]
			}
		}
	}
	if hasHealthCheckPort(sp) && hasHealthCheckPort(old) && sp.HealthCheckNodePort == 0 {
		sp.HealthCheckNodePort = old.HealthCheckNodePort
	}
}

func portKey(p corev1.ServicePort) string { return fmt.Sprintf("%s/%d", p.Protocol, p.Port) }

func isNodePortUsed(sp *corev1.ServiceSpec, nodePort int32) bool {
	return slices.ContainsFunc(sp.Ports, func(p corev1.ServicePort) bool { return nodePort != 0 && p.NodePort == nodePort })
}

func dropAddresses(sp, old *corev1.ServiceSpec) {
	if sp.ClusterIP == old.ClusterIP && slices.Equal(sp.ClusterIPs, old.ClusterIPs) {
		sp.ClusterIP, sp.ClusterIPs = "", nil
	}
	if equality.Semantic.DeepEqual(sp.InternalTrafficPolicy, old.InternalTrafficPolicy) {
		sp.InternalTrafficPolicy = nil
	}
	if slices.Equal(sp.IPFamilies, old.IPFamilies) {
		sp.IPFamilies = nil
	}
	if equality.Semantic.DeepEqual(sp.IPFamilyPolicy, old.IPFamilyPolicy) {
		sp.IPFamilyPolicy = nil
	}
}

func isExternal(sp *corev1.ServiceSpec) bool {
	return sp.Type == corev1.ServiceTypeLoadBalancer || sp.Type == corev1.ServiceTypeNodePort ||
		sp.Type == corev1.ServiceTypeClusterIP && len(sp.ExternalIPs) > 0
}

func hasNodePorts(sp *corev1.ServiceSpec) bool {
	return sp.Type == corev1.ServiceTypeLoadBalancer || sp.Type == corev1.ServiceTypeNodePort
}

func hasHealthCheckPort(sp *corev1.ServiceSpec) bool {
	return sp.Type == corev1.ServiceTypeLoadBalancer && sp.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func samePorts(sp, old *corev1.ServiceSpec) bool {
	count := map[int32]int{}
	for _, p := range old.Ports {
		count[p.NodePort]++
	}
	for _, p := range sp.Ports {
		count[p.NodePort]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
