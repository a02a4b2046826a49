// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
)

// Endpoints become members at once, not when pools are compared the next time.
func TestEndpointsAreHeardOf(t *testing.T) {
	stage(t, Options{}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		for n := range 3 {
			must(s.Endpoints("shop/web", map[int]bool{n: true}))
			must(s.Settles(2 * time.Minute))
			s.Pass(time.Minute)
		}
		for n := range 3 {
			must(s.Endpoints("shop/web", map[int]bool{n: true}))
			must(s.Settles(30 * time.Second))
		}
	})
}

// A Service whose flows arrive at its nodes' own ports lets them in at nodes that are behind another load
// balancer, too: its own pool has them.
func TestALocalServiceIsOpenAtNodesBehindAnotherLoadBalancer(t *testing.T) {
	twins := func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: second}}
	}
	stage(t, Options{Configure: twins}, func(s *Stage) {
		for n := range 2 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", func(svc *corev1.Service) {
			setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
			setAnnotation(svc, annotation+"azure-disable-load-balancer-floating-ip", "true")
		}))
		must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
		must(s.Settles(2 * time.Minute))
	})
}
