// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxAffinitySeconds is in seconds.
const maxAffinitySeconds = 86400

func validateAffinity(s *corev1.Service) field.ErrorList {
	errs := validateEnum(spec.Child("sessionAffinity"), s.Spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	c := s.Spec.SessionAffinityConfig
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
		return errs // the API server drops the config without affinity
	}
	if t := *c.ClientIP.TimeoutSeconds; t < 1 || t > maxAffinitySeconds {
		errs = append(errs, field.Invalid(spec.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), t, "must be 1 to 86400"))
	}
	return errs
}

func validateFamilies(s *corev1.Service) (errs field.ErrorList) {
	for i, f := range s.Spec.IPFamilies {
		at := spec.Child("ipFamilies").Index(i)
		if errs = append(errs, validateEnum(at, f, corev1.IPv4Protocol, corev1.IPv6Protocol)...); slices.Contains(s.Spec.IPFamilies[:i], f) {
			errs = append(errs, field.Duplicate(at, f))
		}
	}
	if p := s.Spec.IPFamilyPolicy; p != nil {
		at := spec.Child("ipFamilyPolicy")
		errs = append(errs, validateEnum(at, *p, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
		if *p == corev1.IPFamilyPolicySingleStack && len(s.Spec.IPFamilies) > 1 {
			errs = append(errs, field.Invalid(at, *p, "may not be 'SingleStack' when there are two ipFamilies"))
		}
	}
	for i, ip := range slices.Compact(append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)) {
		if ip != "" && ip != corev1.ClusterIPNone {
			errs = append(errs, validation.IsValidIPForLegacyField(spec.Child("clusterIPs").Index(max(i-1, 0)), ip, false, nil)...)
		}
	}
	return errs
}

func validateExternalIPs(s *corev1.Service) (errs field.ErrorList) {
	for i, text := range s.Spec.ExternalIPs {
		at := spec.Child("externalIPs").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(at, text, false, nil)...)
		if ip, err := netip.ParseAddr(text); err == nil && (ip.IsUnspecified() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()) {
			errs = append(errs, field.Invalid(at, text, "may not be unspecified, of the loopback or of a link-local range"))
		}
	}
	return errs
}

func validateSourceRanges(s *corev1.Service) (errs field.ErrorList) {
	at, list := spec.Child("loadBalancerSourceRanges"), s.Spec.LoadBalancerSourceRanges
	text, annotated := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	if len(list) == 0 && annotated {
		at = field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		if errs = forbidOtherType(at, true, isLoadBalancer(s), "LoadBalancer"); strings.TrimSpace(text) != "" {
			list = strings.Split(text, ",")
		}
	} else {
		errs = forbidOtherType(at, len(list) > 0, isLoadBalancer(s), "LoadBalancer")
	}
	for i, value := range list {
		place := at
		if len(s.Spec.LoadBalancerSourceRanges) > 0 {
			place = at.Index(i)
		}
		errs = append(errs, validation.IsValidCIDRForLegacyField(place, strings.TrimSpace(value), true, nil)...) // values may be space-padded
	}
	return errs
}

func validateLoadBalancerFields(s *corev1.Service) field.ErrorList {
	errs := forbidOtherType(spec.Child("allocateLoadBalancerNodePorts"), s.Spec.AllocateLoadBalancerNodePorts != nil, isLoadBalancer(s), "LoadBalancer")
	if class := s.Spec.LoadBalancerClass; class != nil {
		errs = append(errs, forbidOtherType(spec.Child("loadBalancerClass"), true, isLoadBalancer(s), "LoadBalancer")...)
		errs = append(errs, newInvalidErrors(spec.Child("loadBalancerClass"), *class, validation.IsQualifiedName(*class))...)
	}
	return errs
}

func validatePolicies(s *corev1.Service) field.ErrorList {
	at := spec.Child("externalTrafficPolicy")
	errs := validateEnum(at, s.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	isExternal := isLoadBalancer(s) || s.Spec.Type == corev1.ServiceTypeNodePort || len(s.Spec.ExternalIPs) > 0
	errs = append(errs, forbidOtherType(at, s.Spec.ExternalTrafficPolicy != "", isExternal, "NodePort' or 'LoadBalancer")...)
	if n := s.Spec.HealthCheckNodePort; n != 0 {
		at := spec.Child("healthCheckNodePort")
		if !isLoadBalancer(s) || s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
			errs = append(errs, field.Invalid(at, n, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
		}
		errs = append(errs, newInvalidErrors(at, n, validation.IsValidPortNum(int(n)))...)
	}
	if p := s.Spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, validateEnum(spec.Child("internalTrafficPolicy"), *p, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	return errs
}
