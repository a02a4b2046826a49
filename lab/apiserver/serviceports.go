// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type schemaKind = schema.GroupVersionKind

// Kubernetes' default node port range, and a common service network.
const (
	firstNodePort, lastNodePort = 30000, 32767
	serviceNetwork              = "10.0.0.0"
)

func admitService(s *Server, next, before object) field.ErrorList {
	svc := next.(*corev1.Service)
	old, _ := before.(*corev1.Service)
	if errs := validateService(svc, old); len(errs) > 0 {
		return errs
	}
	sp := &svc.Spec
	if sp.Type != corev1.ServiceTypeExternalName {
		defaultFamilies(sp)
		if sp.ClusterIP == "" {
			sp.ClusterIP = s.allocateClusterIP(sp.IPFamilies[0])
		}
		if len(sp.ClusterIPs) == 0 {
			sp.ClusterIPs = []string{sp.ClusterIP}
		}
	}
	return s.allocateNodePorts(svc)
}

func defaultFamilies(sp *corev1.ServiceSpec) {
	if sp.IPFamilyPolicy == nil {
		sp.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	}
	if len(sp.IPFamilies) > 0 {
		return
	}
	family := corev1.IPv4Protocol
	if ip, err := netip.ParseAddr(sp.ClusterIP); err == nil && ip.Is6() {
		family = corev1.IPv6Protocol
	}
	sp.IPFamilies = []corev1.IPFamily{family}
	if sp.ClusterIP == corev1.ClusterIPNone && len(sp.Selector) == 0 && *sp.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		sp.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		sp.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
}

func (s *Server) allocateClusterIP(family corev1.IPFamily) string {
	used := map[string]bool{}
	for _, o := range s.stores[s.kinds["v1"]["services"]].objects {
		used[o.(*corev1.Service).Spec.ClusterIP] = true
	}
	for {
		n := s.rng.IntN(1<<16-2) + 1
		ip := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}).String()
		if family == corev1.IPv6Protocol {
			ip = fmt.Sprintf("fd00::%x", n)
		}
		if !used[ip] {
			return ip
		}
	}
}

func (s *Server) allocateNodePorts(svc *corev1.Service) field.ErrorList {
	sp := &svc.Spec
	wants := sp.Type == corev1.ServiceTypeNodePort ||
		sp.Type == corev1.ServiceTypeLoadBalancer && (sp.AllocateLoadBalancerNodePorts == nil || *sp.AllocateLoadBalancerNodePorts)
	if !hasNodePorts(sp) {
		return nil
	}
	var errs field.ErrorList
	used := s.usedPorts(svc)
	own := map[protocolPort]bool{}
	at := field.NewPath("spec", "ports")
	for i, p := range sp.Ports {
		use := protocolPort{p.NodePort, p.Protocol}
		switch {
		case p.NodePort == 0:
		case own[use]:
			errs = append(errs, field.Duplicate(at.Index(i).Child("nodePort"), p.NodePort))
		case p.NodePort < firstNodePort || p.NodePort > lastNodePort:
			errs = append(errs, field.Invalid(at.Index(i).Child("nodePort"), p.NodePort, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)))
		case used[use]:
			errs = append(errs, field.Invalid(at.Index(i).Child("nodePort"), p.NodePort, "provided port is already allocated"))
		}
		own[use] = true
	}
	if len(errs) > 0 {
		return errs
	}
	for i := range sp.Ports {
		p := &sp.Ports[i]
		if p.NodePort == 0 && wants {
			port, err := s.allocateNodePort(used, own, p.Protocol, sharedNodePort(sp, *p))
			if err != nil {
				return field.ErrorList{err}
			}
			p.NodePort = port
			own[protocolPort{p.NodePort, p.Protocol}] = true
		}
	}
	if hasHealthCheckPort(sp) && sp.HealthCheckNodePort == 0 {
		port, err := s.allocateNodePort(used, own, corev1.ProtocolTCP, 0)
		if err != nil {
			return field.ErrorList{err}
		}
		sp.HealthCheckNodePort = port
	}
	return nil
}

// sharedNodePort returns the node port that TCP and UDP port 53, for example, can share.
func sharedNodePort(sp *corev1.ServiceSpec, p corev1.ServicePort) int32 {
	for _, other := range sp.Ports {
		if other.Port == p.Port && other.Protocol != p.Protocol && other.NodePort != 0 {
			return other.NodePort
		}
	}
	return 0
}

type protocolPort struct {
	port     int32
	protocol corev1.Protocol
}

func (s *Server) usedPorts(but *corev1.Service) map[protocolPort]bool {
	used := map[protocolPort]bool{}
	for _, o := range s.stores[s.kinds["v1"]["services"]].objects {
		if o.GetUID() == but.UID {
			continue
		}
		sp := o.(*corev1.Service).Spec
		for _, p := range sp.Ports {
			used[protocolPort{p.NodePort, p.Protocol}] = true
		}
		used[protocolPort{sp.HealthCheckNodePort, corev1.ProtocolTCP}] = true
	}
	return used
}

// allocateNodePort fails if the range is exhausted, as in kube-apiserver.
func (s *Server) allocateNodePort(used, own map[protocolPort]bool, protocol corev1.Protocol, like int32) (int32, *field.Error) {
	if use := (protocolPort{like, protocol}); like != 0 && !used[use] && !own[use] {
		return like, nil
	}
	const count = lastNodePort - firstNodePort + 1
	first := s.rng.IntN(count)
	for i := range count {
		port := int32(firstNodePort + (first+i)%count) //nolint:gosec // below 32768
		if use := (protocolPort{port, protocol}); !used[use] && !own[use] {
			return port, nil
		}
	}
	return 0, field.InternalError(field.NewPath("spec", "ports"), errors.New("failed to allocate a nodePort: range is full"))
}

func validateService(svc, before *corev1.Service) field.ErrorList {
	sp := &svc.Spec
	at := field.NewPath("spec")
	var errs field.ErrorList
	types := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort}
	if !slices.Contains(types, sp.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), sp.Type, types))
	}
	if len(sp.Ports) == 0 && sp.Type != corev1.ServiceTypeExternalName && sp.ClusterIP != corev1.ClusterIPNone {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	if sp.ClusterIP == corev1.ClusterIPNone && hasNodePorts(sp) {
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), sp.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", sp.Type)))
	}
	errs = append(errs, validatePorts(sp, at.Child("ports"))...)
	errs = append(errs, validateTypeFields(sp, at)...)
	for i, in := range svc.Status.LoadBalancer.Ingress {
		if in.IP != "" && in.IPMode == nil {
			errs = append(errs, field.Required(field.NewPath("status", "loadBalancer", "ingress").Index(i).Child("ipMode"), ""))
		}
	}
	if before != nil {
		errs = append(errs, validateServiceChange(sp, &before.Spec, at)...)
	}
	return errs
}

func validatePorts(sp *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, ports := map[string]bool{}, map[protocolPort]bool{}
	for i, p := range sp.Ports {
		got := at.Index(i)
		switch {
		case p.Name == "" && len(sp.Ports) > 1:
			errs = append(errs, field.Required(got.Child("name"), ""))
		case p.Name != "" && names[p.Name]:
			errs = append(errs, field.Duplicate(got.Child("name"), p.Name))
		}
		names[p.Name] = true
		if p.Port < 1 || p.Port > 65535 {
			errs = append(errs, field.Invalid(got.Child("port"), p.Port, "must be between 1 and 65535, inclusive"))
		}
		if to := p.TargetPort; to.Type == intstr.Int && (to.IntVal < 1 || to.IntVal > 65535) {
			errs = append(errs, field.Invalid(got.Child("targetPort"), to.IntVal, "must be between 1 and 65535, inclusive"))
		}
		protocols := []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
		if !slices.Contains(protocols, p.Protocol) {
			errs = append(errs, field.NotSupported(got.Child("protocol"), p.Protocol, protocols))
		}
		if sp.Type == corev1.ServiceTypeClusterIP && p.NodePort != 0 {
			errs = append(errs, field.Forbidden(got.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if use := (protocolPort{p.Port, p.Protocol}); ports[use] {
			errs = append(errs, field.Duplicate(got, corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		} else {
			ports[use] = true
		}
	}
	return errs
}

func validateTypeFields(sp *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if sp.Type != corev1.ServiceTypeLoadBalancer {
		if sp.LoadBalancerClass != nil {
			errs = append(errs, field.Forbidden(at.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
		}
		if sp.AllocateLoadBalancerNodePorts != nil {
			errs = append(errs, field.Forbidden(at.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
		}
	}
	if !isExternal(sp) && sp.ExternalTrafficPolicy != "" {
		errs = append(errs, field.Invalid(at.Child("externalTrafficPolicy"), sp.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if !hasHealthCheckPort(sp) && sp.HealthCheckNodePort != 0 {
		errs = append(errs, field.Invalid(at.Child("healthCheckNodePort"), sp.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	return errs
}

func validateServiceChange(sp, old *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if old.Type != corev1.ServiceTypeExternalName && sp.Type != corev1.ServiceTypeExternalName && old.ClusterIP != "" && sp.ClusterIP != old.ClusterIP {
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), sp.ClusterIPs, "may not change once set"))
	}
	switch class := at.Child("loadBalancerClass"); {
	case equality.Semantic.DeepEqual(sp.LoadBalancerClass, old.LoadBalancerClass):
	case sp.Type != corev1.ServiceTypeLoadBalancer && sp.LoadBalancerClass != nil:
		errs = append(errs, field.Forbidden(class, "may only be used when `type` is 'LoadBalancer'"))
	case sp.Type == corev1.ServiceTypeLoadBalancer && old.Type == corev1.ServiceTypeLoadBalancer:
		errs = append(errs, field.Invalid(class, sp.LoadBalancerClass, "may not change once set"))
	}
	if hasHealthCheckPort(old) && hasHealthCheckPort(sp) && sp.HealthCheckNodePort != old.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(at.Child("healthCheckNodePort"), "field is immutable"))
	}
	return errs
}
