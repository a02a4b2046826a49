// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
)

// concludes waits for the absence of the condition if reason is "".
func (s *scene) concludes(name, kind, reason, part string) {
	s.Helper()
	s.until(func() string {
		c := meta.FindStatusCondition(get[corev1.Service](s, s.ns, name).Status.Conditions, kind)
		switch {
		case reason == "" && c == nil:
			return ""
		case reason == "" || c == nil || c.Reason != reason || !strings.Contains(c.Message, part):
			return kind + " is not as wanted"
		}
		return ""
	})
}

// A Service's conditions show its progress. Conditions of other controllers are kept.
func TestConditionsOfAService(t *testing.T) {
	s := newScene(t)
	s.wants("web")
	svc := s.balanced("web", 1)
	s.concludes("web", view.ConditionAccepted, servicelb.WhyAccepted, "")
	s.concludes("web", view.ConditionProgrammed, servicelb.WhyProgrammed, "")

	// Conditions forged by a tenant are corrected without a request to Azure.
	before := svc.DeepCopy()
	svc.Status.Conditions = []metav1.Condition{
		{Type: "example.com/Theirs", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.Now()},
		{Type: view.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: "Lies", LastTransitionTime: metav1.Now()},
	}
	if err := api.Status().Patch(t.Context(), svc, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}

	s.edits("web", annotated("azure-load-balancer-tcp-idle-timeout", "never"))
	s.concludes("web", view.ConditionAccepted, servicelb.WhyInvalid, "never")
	s.concludes("web", view.ConditionProgrammed, servicelb.WhyNotAccepted, view.ConditionAccepted)
	s.asked("web", 1)

	s.edits("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.concludes("web", view.ConditionAccepted, servicelb.WhyAccepted, "")
	s.concludes("web", view.ConditionProgrammed, servicelb.WhyProgrammed, "")

	s.edits("web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalTrafficPolicy, svc.Spec.AllocateLoadBalancerNodePorts, svc.Spec.HealthCheckNodePort = "", nil, 0
	})
	s.concludes("web", view.ConditionProgrammed, "", "")
	s.concludes("web", view.ConditionAccepted, "", "")
	if left := get[corev1.Service](s, s.ns, "web").Status.Conditions; len(left) != 1 || left[0].Type != "example.com/Theirs" {
		t.Errorf("conditions of others: %+v", left)
	}
}

// The API server accepts the port status of a rejected port.
func TestARefusedPortIsInTheStatus(t *testing.T) {
	s := newScene(t)
	s.wants("web")
	s.balanced("web", 1)
	shows := func(want string) {
		t.Helper()
		s.until(func() string {
			is := get[corev1.Service](s, s.ns, "web").Status.LoadBalancer.Ingress
			if len(is) != 1 || is[0].IP == "" {
				return "the address is not there"
			}
			got := ""
			for _, p := range is[0].Ports {
				got += ptr.Deref(p.Error, "none")
			}
			if got != want {
				return "of its ports the status says " + got
			}
			return ""
		})
	}
	shows("")
	s.edits("web", annotated("port_80_health-probe_protocol", "never"))
	s.concludes("web", view.ConditionAccepted, servicelb.WhyInvalid, "never")
	shows("weir.dev/InvalidAnnotation")
	s.edits("web", annotated("port_80_health-probe_protocol", "tcp"))
	s.concludes("web", view.ConditionAccepted, servicelb.WhyAccepted, "")
	shows("")
}
