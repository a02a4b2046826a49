// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

// An SCTP Service shares its address with Services of its namespace that request it, and with those that have
// it. Their events requeue it.
func TestAddressOfServiceWithSCTP(t *testing.T) {
	internal := func(annotations map[string]string, shown string) *corev1.Service {
		s := objects.NewService(corev1.ServiceTypeLoadBalancer)
		s.Annotations = map[string]string{service.Internal: "true"}
		for key, value := range annotations {
			s.Annotations[key] = value
		}
		s.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
		if shown != "" {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: shown}}
		}
		return s
	}
	asks := map[string]string{service.IPv4: "10.0.0.50"}
	for about, tt := range map[string]struct {
		of, other *corev1.Service
		edit      func(*corev1.Service)
		shares    bool
	}{
		"nobody asks for one":               {of: internal(nil, ""), other: internal(nil, "")},
		"both ask for it":                   {of: internal(asks, ""), other: internal(asks, ""), shares: true},
		"the other asks for another":        {of: internal(asks, ""), other: internal(map[string]string{service.IPv4: "10.0.0.51"}, "")},
		"the other asks in another subnet":  {of: internal(asks, ""), other: internal(map[string]string{service.IPv4: "10.0.0.50", service.InternalSubnet: "apps"}, "")},
		"the other is public":               {of: internal(asks, ""), other: internal(map[string]string{service.IPv4: "10.0.0.50", service.Internal: "false"}, "")},
		"the other is of another namespace": {of: internal(asks, ""), other: internal(asks, ""), edit: func(s *corev1.Service) { s.Namespace = "blog" }},
		"the other leaves": {of: internal(asks, ""), other: internal(asks, ""), shares: true, edit: func(s *corev1.Service) {
			s.DeletionTimestamp, s.Finalizers = new(metav1.Now()), []string{metadata.ServiceFinalizer}
		}},
		"the other is of another class":         {of: internal(asks, ""), other: internal(asks, ""), edit: func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("other") }},
		"the other asks for what it shows":      {of: internal(nil, "10.0.0.50"), other: internal(asks, "")},
		"both show it":                          {of: internal(nil, "10.0.0.50"), other: internal(asks, "10.0.0.50"), shares: true},
		"both show it, of different namespaces": {of: internal(nil, "10.0.0.50"), other: internal(asks, "10.0.0.50"), shares: true, edit: func(s *corev1.Service) { s.Namespace = "blog" }},
	} {
		r := newHoldingCluster(t)
		tt.of.Name, tt.of.UID, tt.other.Name, tt.other.UID = "sctp", "77", "other", types.UID("78")
		tt.of.Spec.Ports = append(tt.of.Spec.Ports, corev1.ServicePort{Port: 3868, Protocol: corev1.ProtocolSCTP})
		if tt.edit != nil {
			tt.edit(tt.other)
		}
		if err := r.View.Add(tt.of, tt.other); err != nil {
			t.Fatal(err)
		}
		if got := services.SharesAddress(r.Services, cache.ServiceLB(tt.of)); got != tt.shares {
			t.Errorf("%s: %t", about, got)
		}
		requested := false
		for _, req := range services.BalancedService(t.Context(), r.Services, tt.other) {
			requested = requested || req.Name == "sctp"
		}
		if requested != tt.shares {
			t.Errorf("%s: an event of the other has it looked at: %t", about, requested)
		}
		for _, req := range services.BalancedService(t.Context(), r.Services, tt.of) {
			if req.Name == "other" {
				t.Errorf("%s: the other has no port of SCTP, and is looked at", about)
			}
		}
	}
}
