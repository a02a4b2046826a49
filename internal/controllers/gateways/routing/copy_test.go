// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func copied() (rule Rule, s *corev1.Service) {
	rule = Rule{Listener: "alt", Port: 444, Backend: Backend{Service: types.NamespacedName{Namespace: "shop", Name: "a"}, Protocol: corev1.ProtocolTCP, NodePort: 30001}}
	return rule, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1", Selector: map[string]string{"app": "a"},
		Ports: []corev1.ServicePort{
			{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, NodePort: 30001, TargetPort: intstr.FromInt32(53)},
			{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30001, TargetPort: intstr.FromString("http")},
		},
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
		PublishNotReadyAddresses: true, SessionAffinity: corev1.ServiceAffinityNone, TrafficDistribution: new("PreferSameNode"),
	}}
}

// createdCopy returns a copy as the API server returns it.
func createdCopy(c *corev1.Service) *corev1.Service {
	c = c.DeepCopy()
	c.UID, c.ResourceVersion, c.Spec.ClusterIP, c.Spec.ClusterIPs = "9", "7", "10.0.0.2", []string{"10.0.0.2"}
	c.Spec.Ports[0].NodePort = 32000
	return c
}

// A copy has the pods of one port of the Service, and its policies.
func TestCopyOfAService(t *testing.T) {
	t.Parallel()
	rule, s := copied()
	gw := gateway()
	gw.UID = "1"
	c := NewCopy(gw, rule, s)
	if p := c.Spec.Ports; len(p) != 1 || p[0].Name != "web" || p[0].NodePort != 0 || p[0].TargetPort != intstr.FromString("http") {
		t.Errorf("ports %+v", p)
	}
	if got := c.Spec; got.Type != corev1.ServiceTypeNodePort || got.ClusterIP != "" || got.Selector["app"] != "a" || got.IPFamilies[0] != corev1.IPv6Protocol ||
		*got.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack || !got.PublishNotReadyAddresses || *got.TrafficDistribution != "PreferSameNode" {
		t.Errorf("spec %+v", got)
	}
	if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != "1" || c.OwnerReferences[0].Kind != "Gateway" || c.OwnerReferences[0].APIVersion != "gateway.networking.k8s.io/v1" {
		t.Errorf("owners %+v", c.OwnerReferences)
	}
	want := CopySource{Gateway: types.NamespacedName{Namespace: "shop", Name: "edge"}, UID: "1", Listener: "alt", Backend: rule.Service}
	if source, ok := CopySourceOf(createdCopy(c)); !ok || source != want {
		t.Errorf("source %+v, %v", source, ok)
	}

	rule.HealthCheckNodePort = 31000
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	if local := NewCopy(gw, rule, s); local.Spec.Type != corev1.ServiceTypeLoadBalancer || *local.Spec.LoadBalancerClass != unservedClass || local.Name == c.Name {
		t.Errorf("Local: %+v", local)
	}
	gw.Namespace = "infra"
	if foreign := NewCopy(gw, rule, s); len(foreign.OwnerReferences) > 0 || foreign.Namespace != "shop" {
		t.Errorf("an owner must be in the namespace: %+v", foreign.ObjectMeta)
	}
	s.Spec.Selector = nil
	if c := NewCopy(gw, rule, s); c != nil {
		t.Errorf("without a selector: %+v", c)
	}
}

// Annotations prove nothing: a Service is a copy only with the name and the spec that follow from them.
func TestServicesThatAreNoCopies(t *testing.T) {
	t.Parallel()
	rule, s := copied()
	gw := gateway()
	gw.UID = "1"
	for name, edit := range map[string]func(*corev1.Service){
		"name":            func(c *corev1.Service) { c.Name = "precious" },
		"namespace":       func(c *corev1.Service) { c.Namespace = "other" },
		"selector":        func(c *corev1.Service) { c.Spec.Selector = map[string]string{"app": "b"} },
		"target port":     func(c *corev1.Service) { c.Spec.Ports[0].TargetPort = intstr.FromInt32(22) },
		"a second port":   func(c *corev1.Service) { c.Spec.Ports = append(c.Spec.Ports, corev1.ServicePort{Port: 9}) },
		"no port":         func(c *corev1.Service) { c.Spec.Ports = nil },
		"external IP":     func(c *corev1.Service) { c.Spec.ExternalIPs = []string{"192.0.2.1"} },
		"type":            func(c *corev1.Service) { c.Spec.Type = corev1.ServiceTypeClusterIP },
		"policy":          func(c *corev1.Service) { c.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal },
		"another Gateway": func(c *corev1.Service) { c.Annotations[uidAnnotation] = "2" },
		"listener":        func(c *corev1.Service) { c.Annotations[listenerAnnotation] = "shop/edge/web" },
		"no listener":     func(c *corev1.Service) { c.Annotations[listenerAnnotation] = "shop/edge" },
		"backend":         func(c *corev1.Service) { c.Annotations[backendAnnotation] = "b" },
		"no annotations":  func(c *corev1.Service) { c.Annotations = nil },
	} {
		c := createdCopy(NewCopy(gw, rule, s))
		edit(c)
		if _, ok := CopySourceOf(c); ok {
			t.Errorf("%s: taken for a copy", name)
		}
	}
}

// A changed Service changes its copies in place: their node ports remain.
func TestUpdateCopy(t *testing.T) {
	t.Parallel()
	rule, s := copied()
	gw := gateway()
	c := createdCopy(NewCopy(gw, rule, s))
	if UpdateCopy(c, NewCopy(gw, rule, s)) {
		t.Error("an equal copy is updated")
	}
	for name, edit := range map[string]func(*corev1.ServiceSpec){
		"selector":    func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"app": "green"} },
		"target port": func(s *corev1.ServiceSpec) { s.Ports[1].TargetPort = intstr.FromInt32(8443) },
		"affinity": func(s *corev1.ServiceSpec) {
			s.SessionAffinity, s.SessionAffinityConfig = corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(9))}}
		},
		"unready":      func(s *corev1.ServiceSpec) { s.PublishNotReadyAddresses = false },
		"distribution": func(s *corev1.ServiceSpec) { s.TrafficDistribution = nil },
		"internal":     func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) },
	} {
		edit(&s.Spec)
		want := NewCopy(gw, rule, s)
		if want.Name != c.Name || !UpdateCopy(c, want) {
			t.Errorf("%s: not updated in place", name)
		}
		if _, ok := CopySourceOf(c); !ok || c.Spec.Ports[0].NodePort != 32000 {
			t.Errorf("%s: got %+v", name, c.Spec)
		}
	}
}
