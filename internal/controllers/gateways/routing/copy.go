// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/k8s/metadata"
)

// Annotations of a copy.
const (
	listenerAnnotation = "gateway.weir.dev/listener" // namespace/Gateway/listener
	uidAnnotation      = "gateway.weir.dev/uid"      // of the Gateway
	backendAnnotation  = "gateway.weir.dev/backend"  // name of the copied Service
	specAnnotation     = "gateway.weir.dev/spec"     // hash of the spec that Weir wrote
)

// CopyAnnotations are the annotations of a copy that a cache must keep.
var CopyAnnotations = []string{listenerAnnotation, uidAnnotation, backendAnnotation, specAnnotation}

// unservedClass is the class of copies with a healthCheckNodePort, which only Services of type LoadBalancer have. No
// controller serves it.
const unservedClass = "weir.dev/node-ports-only"

// CopySource is what a copy of one port of a backend Service is for. A copy has another node port, and the same pods.
type CopySource struct {
	Gateway  types.NamespacedName
	UID      types.UID
	Listener gatewayv1.SectionName
	// Backend is the copied Service.
	Backend types.NamespacedName
}

// NewCopy returns the copy of a port of Service s for a listener; nil if the Service has no port with this backend, or no
// selector, so that a copy would have no endpoints.
func NewCopy(gw *gatewayv1.Gateway, rule Rule, s *corev1.Service) *corev1.Service {
	for _, p := range s.Spec.Ports {
		if p.NodePort != rule.NodePort || p.Protocol != rule.Protocol || len(s.Spec.Selector) == 0 {
			continue
		}
		p.NodePort = 0
		spec := s.Spec
		spec.Ports = []corev1.ServicePort{p}
		spec.Type, spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil
		if rule.HealthCheckNodePort != 0 {
			spec.Type, spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new(unservedClass)
		}
		spec.ExternalIPs, spec.LoadBalancerSourceRanges = nil, nil
		spec = copiedSpec(spec)
		source := CopySource{Gateway: types.NamespacedName{Namespace: gw.Namespace, Name: gw.Name}, UID: gw.UID, Listener: rule.Listener, Backend: rule.Service}
		c := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: rule.Service.Namespace, Name: source.copyName(spec), Labels: map[string]string{metadata.ManagedBy: "weir"},
				Annotations: map[string]string{
					listenerAnnotation: gw.Namespace + "/" + gw.Name + "/" + string(rule.Listener), uidAnnotation: string(gw.UID),
					backendAnnotation: rule.Service.Name, specAnnotation: hashOf(spec),
				},
			},
			Spec: spec,
		}
		if gw.Namespace == c.Namespace {
			c.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: gatewayv1.GroupVersion.String(), Kind: string(KindGateway), Name: gw.Name, UID: gw.UID, Controller: new(true),
			}}
		}
		return c
	}
	return nil
}

// CopySourceOf returns the source of a Service with exactly the name and spec that Weir derives for a copy. For any
// other Service it returns false, whatever its annotations are: Weir must not change or delete it.
func CopySourceOf(s *corev1.Service) (CopySource, bool) {
	parts := strings.Split(s.Annotations[listenerAnnotation], "/")
	if len(parts) != 3 || len(s.Spec.Ports) != 1 {
		return CopySource{}, false
	}
	source := CopySource{
		Gateway: types.NamespacedName{Namespace: parts[0], Name: parts[1]}, UID: types.UID(s.Annotations[uidAnnotation]), Listener: gatewayv1.SectionName(parts[2]),
		Backend: types.NamespacedName{Namespace: s.Namespace, Name: s.Annotations[backendAnnotation]},
	}
	spec := copiedSpec(s.Spec)
	return source, s.Name == source.copyName(spec) && s.Annotations[specAnnotation] == hashOf(spec)
}

// UpdateCopy gives a copy the spec and annotations that are wanted, and keeps its node port. It reports whether
// anything changed.
func UpdateCopy(s, want *corev1.Service) (changed bool) {
	if s.Annotations[specAnnotation] == want.Annotations[specAnnotation] {
		return false
	}
	s.Annotations[specAnnotation] = want.Annotations[specAnnotation]
	port := want.Spec.Ports[0]
	port.NodePort = s.Spec.Ports[0].NodePort
	s.Spec.Selector, s.Spec.Ports = want.Spec.Selector, []corev1.ServicePort{port}
	s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = want.Spec.InternalTrafficPolicy, want.Spec.TrafficDistribution
	s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = want.Spec.SessionAffinity, want.Spec.SessionAffinityConfig
	s.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	return true
}

// copyName returns the name of a copy. It differs for what cannot change in place.
func (c CopySource) copyName(spec corev1.ServiceSpec) string {
	fixed := corev1.ServiceSpec{Type: spec.Type, LoadBalancerClass: spec.LoadBalancerClass, ExternalTrafficPolicy: spec.ExternalTrafficPolicy, IPFamilies: spec.IPFamilies, IPFamilyPolicy: spec.IPFamilyPolicy}
	return "weir-" + hashOf(c, spec.Ports[0].Port, spec.Ports[0].Protocol, fixed)
}

// copiedSpec returns the fields of a spec that a copy has. The API server sets the others.
func copiedSpec(s corev1.ServiceSpec) corev1.ServiceSpec {
	p := s.Ports[0]
	return corev1.ServiceSpec{
		Type: s.Type, LoadBalancerClass: s.LoadBalancerClass, Selector: s.Selector,
		Ports:                 []corev1.ServicePort{{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port, TargetPort: targetPort(p)}},
		ExternalTrafficPolicy: s.ExternalTrafficPolicy, InternalTrafficPolicy: s.InternalTrafficPolicy, TrafficDistribution: s.TrafficDistribution,
		IPFamilies: s.IPFamilies, IPFamilyPolicy: s.IPFamilyPolicy, PublishNotReadyAddresses: s.PublishNotReadyAddresses,
		SessionAffinity: s.SessionAffinity, SessionAffinityConfig: s.SessionAffinityConfig,
		ExternalIPs: s.ExternalIPs, LoadBalancerSourceRanges: s.LoadBalancerSourceRanges,
	}
}

// targetPort returns the target port with the default of the API server.
func targetPort(p corev1.ServicePort) intstr.IntOrString {
	if p.TargetPort == (intstr.IntOrString{}) {
		return intstr.FromInt32(p.Port)
	}
	return p.TargetPort
}

func hashOf(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // the types are known
	}
	sum := sha256.Sum256(text)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:24]
}
