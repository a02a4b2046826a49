// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

// A Service with PROXY protocol is found only from Services on the same load balancer.
func TestProxyProtocolNeighbor(t *testing.T) {
	link := objects.NewService(corev1.ServiceTypeLoadBalancer)
	link.Name, link.UID = "link", "77"
	link.Annotations = map[string]string{service.PLSCreate: "true", service.PLSProxyProtocol: "true", metadata.PlaceAnnotation: "kubernetes-internal"}
	r := newHoldingCluster(t)
	if err := r.View.Add(link); err != nil {
		t.Fatal(err)
	}
	web := cache.ServiceLB(objects.NewService(corev1.ServiceTypeLoadBalancer))
	for place, want := range map[string]string{"Kubernetes-internal": "shop/link", "kubernetes": "", "": ""} {
		if web.Record.LoadBalancers = []string{place}; place == "" {
			web.Record.LoadBalancers = nil
		}
		if got := services.ProxiedBeside(r.Services, web); got != want {
			t.Errorf("on %q: %q, want %q", place, got, want)
		}
	}
	if got := services.ProxiedBeside(r.Services, cache.ServiceLB(link)); got != "" {
		t.Errorf("beside itself: %q", got)
	}
}
