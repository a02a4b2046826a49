// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/services"
)

// An unenforced restriction is reported once per change, and the Service still works.
func TestRestrictionWithoutEffectIsReported(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", annotated("azure-deny-all-except-load-balancer-source-ranges", "true"))
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventNoEffect, 1)
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.waitForRequests("web", 2)
	s.waitForEvent("Service", "web", services.EventEnsured, 2)
	s.waitForEvent("Service", "web", services.EventNoEffect, 1)
	s.editService("web", func(svc *corev1.Service) {
		annotated("azure-disable-load-balancer-nsg-rule", "true")(svc)
		svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	})
	s.waitForEvent("Service", "web", services.EventNoEffect, 2)
}
