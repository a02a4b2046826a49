// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
