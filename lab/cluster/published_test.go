// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/test/shipped"
)

// A Service is published, a consumer connects and is seen within five minutes, and all of it goes with the
// Service, whose process dies in the midst of that.
func TestAServiceThatIsPublished(t *testing.T) {
	opens := func(c *config.Config) { ofInterfaces(c); c.DisableSubnetPolicies = true }
	stage(t, Options{Configure: opens, Role: shipped.AzureRoles()}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pls-create", "true") }))
		must(s.Settles(10 * time.Minute))
		must(s.connect(1))
		s.Pass(6 * time.Minute)
		links, err := s.links()
		if err != nil || len(links) != 1 {
			t.Fatalf("%d are published, %v", len(links), err)
		}
		must(s.DeleteService("shop/web"))
		for range 4 {
			s.Pass(7 * time.Second)
			s.Kill(0)
		}
		must(s.Settles(20 * time.Minute))
		if links, err = s.links(); err != nil || len(links) > 0 {
			t.Errorf("%d are left, %v", len(links), err)
		}
	})
}
