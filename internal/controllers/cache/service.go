// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// ServiceOf converts a Service for package service.
func ServiceOf(s *corev1.Service) service.Service {
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
		if strings.HasPrefix(name, azureAnnotations) || slices.Contains(service.WeirAnnotations, name) {
			out.Annotations[name] = value
		}
	}
	for _, family := range s.Spec.IPFamilies {
		out.Families = append(out.Families, lb.Family(family))
	}
	if len(out.Families) == 0 { // an API server sets the default
		out.Families = []lb.Family{lb.IPv4}
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, service.Port{
			Name: p.Name, Protocol: string(p.Protocol), AppProtocol: ptr.Deref(p.AppProtocol, ""), Port: p.Port, NodePort: p.NodePort,
			HealthCheckNodePort: healthCheckNodePort(s, p),
		})
	}
	return out
}

func writtenProperties(s *corev1.Service) []string {
	return slices.DeleteFunc(servicelb.ParseNames(s.Annotations[service.WrittenProperties]), func(name string) bool { return !service.IsProperty(name) })
}

// ServiceLB converts a Service for package servicelb.
func ServiceLB(s *corev1.Service) servicelb.Service {
	return servicelb.Service{
		Name: metadata.Key(s.Namespace, s.Name), UID: string(s.UID), Created: s.CreationTimestamp.Time, Generation: s.Generation, Ownership: OwnershipOf(s),
		Record: servicelb.Record{
			LoadBalancers: servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation]), Groups: servicelb.ParseGroups(s.Annotations[metadata.GroupsAnnotation]),
			LinkGroups: servicelb.ParseGroups(s.Annotations[metadata.LinkGroupsAnnotation]), Class: RecordedClass(s),
			Properties: writtenProperties(s),
		},
		StatusAddresses: IngressAddresses(s), ProgrammedReason: programmedReason(s), Object: ServiceOf(s),
		DryRun: DryRun(s), Problems: DryRunProblems(s), AllowRemoval: AllowsRemoval(s), RetryToken: s.Annotations[metadata.WriteAgainAnnotation],
	}
}

func programmedReason(s *corev1.Service) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, ConditionProgrammed); c != nil {
		return c.Reason
	}
	return ""
}

// ServiceObject returns the Service object, or a placeholder if it is deleted.
func (s *Snapshot) ServiceObject(of servicelb.Service) *corev1.Service {
	if svc := Get[corev1.Service](s.Services, of.Name); svc != nil && string(svc.UID) == of.UID {
		return svc
	}
	name := NamespacedName(of.Name)
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: types.UID(of.UID)}}
}

// NamespacedName parses namespace/name.
func NamespacedName(service string) types.NamespacedName {
	namespace, name, _ := strings.Cut(service, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// FilterConditions returns the conditions of these types.
func FilterConditions(conditions []metav1.Condition, types ...string) (kept []metav1.Condition) {
	for _, conditionType := range types {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
			kept = append(kept, *c)
		}
	}
	return kept
}

// OwnsLink reports whether the Service is recorded as owner of a Private Link Service.
func OwnsLink(s *corev1.Service) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, metadata.ConditionPrivateLink)
	return c != nil && c.Reason == privatelink.ReasonPublished
}
