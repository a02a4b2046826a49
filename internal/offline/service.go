// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var spec = field.NewPath("spec")

// Source: https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/
var rules = []func(*corev1.Service) field.ErrorList{
	validateType, validatePorts, validateSelector, validateAffinity, validateFamilies, validateExternalIPs, validateSourceRanges, validateLoadBalancerFields, validatePolicies,
}

// validateService returns what an API server would reject. Defaulted fields may be missing.
func validateService(s *corev1.Service) field.ErrorList {
	errs := validateMeta(s.ObjectMeta, true, apivalidation.NameIsDNSLabel)
	for _, rule := range rules {
		errs = append(errs, rule(s)...)
	}
	return errs
}

func validateMeta(m metav1.ObjectMeta, namespaced bool, name apivalidation.ValidateNameFunc) field.ErrorList {
	return apivalidation.ValidateObjectMeta(&m, namespaced, name, field.NewPath("metadata"))
}

func validateEnum[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func newInvalidErrors(at *field.Path, value any, reason []string) (errs field.ErrorList) {
	for _, text := range reason {
		errs = append(errs, field.Invalid(at, value, text))
	}
	return errs
}

// forbidOtherType rejects a field that does not fit the Service type.
func forbidOtherType(at *field.Path, set, fits bool, kind string) field.ErrorList {
	if !set || fits {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "may only be used when `type` is '"+kind+"'")}
}

func isLoadBalancer(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeLoadBalancer }

func isHeadless(s *corev1.Service) bool {
	return s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.ClusterIPs) == 1 && s.Spec.ClusterIPs[0] == corev1.ClusterIPNone
}

func validateType(s *corev1.Service) field.ErrorList {
	errs := validateEnum(spec.Child("type"), s.Spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if isHeadless(s) {
			errs = append(errs, field.Invalid(spec.Child("clusterIP"), s.Spec.ClusterIP, "may not be 'None' for Services of type "+string(s.Spec.Type)))
		}
	case corev1.ServiceTypeExternalName:
		if s.Spec.ExternalName == "" {
			return append(errs, field.Required(spec.Child("externalName"), ""))
		}
		errs = append(errs, newInvalidErrors(spec.Child("externalName"), s.Spec.ExternalName, validation.IsDNS1123Subdomain(strings.TrimSuffix(s.Spec.ExternalName, ".")))...)
	case corev1.ServiceTypeClusterIP:
	}
	return errs
}

func validatePorts(s *corev1.Service) (errs field.ErrorList) {
	if len(s.Spec.Ports) == 0 && !isHeadless(s) && s.Spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(spec.Child("ports"), "")}
	}
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	names, numbers, atNodes := map[string]bool{}, map[key]bool{}, map[key]bool{}
	for i, p := range s.Spec.Ports {
		at := spec.Child("ports").Index(i)
		errs = append(errs, validatePort(p, at)...)
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		switch {
		case p.Name == "" && len(s.Spec.Ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), "a Service with several ports names each"))
		case p.Name != "" && names[p.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		if numbers[key{p.Protocol, p.Port}] {
			errs = append(errs, field.Duplicate(at.Child("port"), p.Port))
		}
		if p.NodePort != 0 && atNodes[key{p.Protocol, p.NodePort}] {
			errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
		}
		if p.NodePort != 0 && (s.Spec.Type == "" || s.Spec.Type == corev1.ServiceTypeClusterIP) {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		names[p.Name], numbers[key{p.Protocol, p.Port}], atNodes[key{p.Protocol, p.NodePort}] = true, true, true
	}
	return errs
}

func validatePort(p corev1.ServicePort, at *field.Path) field.ErrorList {
	errs := newInvalidErrors(at.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))
	errs = append(errs, validateEnum(at.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
	if p.Name != "" {
		errs = append(errs, newInvalidErrors(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
	}
	if p.NodePort != 0 {
		errs = append(errs, newInvalidErrors(at.Child("nodePort"), p.NodePort, validation.IsValidPortNum(int(p.NodePort)))...)
	}
	switch target := p.TargetPort; {
	case target.Type == intstr.String && target.StrVal != "":
		errs = append(errs, newInvalidErrors(at.Child("targetPort"), target.StrVal, validation.IsValidPortName(target.StrVal))...)
	case target.Type == intstr.Int && target.IntVal != 0:
		errs = append(errs, newInvalidErrors(at.Child("targetPort"), target.IntVal, validation.IsValidPortNum(int(target.IntVal)))...)
	}
	if p.AppProtocol != nil {
		errs = append(errs, newInvalidErrors(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
	}
	return errs
}

func validateSelector(s *corev1.Service) field.ErrorList {
	return metavalidation.ValidateLabels(s.Spec.Selector, spec.Child("selector"))
}
