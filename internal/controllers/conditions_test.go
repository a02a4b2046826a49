// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// waitForCondition waits for the absence of the condition if reason is "".
func (env *testEnv) waitForCondition(name, kind, reason, part string) {
	env.Helper()
	env.waitUntil(func() string {
		c := meta.FindStatusCondition(get[corev1.Service](env, env.ns, name).Status.Conditions, kind)
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
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	svc := s.waitForAddresses("web", 1)
	s.waitForCondition("web", cache.ConditionAccepted, servicelb.ConditionReasonAccepted, "")
	s.waitForCondition("web", cache.ConditionProgrammed, servicelb.ConditionReasonProgrammed, "")

	// Conditions forged by a tenant are corrected without a request to Azure.
	before := svc.DeepCopy()
	svc.Status.Conditions = []metav1.Condition{
		{Type: "example.com/Theirs", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.Now()},
		{Type: cache.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: "Lies", LastTransitionTime: metav1.Now()},
	}
	if err := api.Status().Patch(t.Context(), svc, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}

	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "never"))
	s.waitForCondition("web", cache.ConditionAccepted, servicelb.ConditionReasonInvalid, "never")
	s.waitForCondition("web", cache.ConditionProgrammed, servicelb.ConditionReasonNotAccepted, cache.ConditionAccepted)
	s.waitForRequests("web", 1)

	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.waitForCondition("web", cache.ConditionAccepted, servicelb.ConditionReasonAccepted, "")
	s.waitForCondition("web", cache.ConditionProgrammed, servicelb.ConditionReasonProgrammed, "")

	s.editService("web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalTrafficPolicy, svc.Spec.AllocateLoadBalancerNodePorts, svc.Spec.HealthCheckNodePort = "", nil, 0
	})
	s.waitForCondition("web", cache.ConditionProgrammed, "", "")
	s.waitForCondition("web", cache.ConditionAccepted, "", "")
	if remaining := get[corev1.Service](s, s.ns, "web").Status.Conditions; len(remaining) != 1 || remaining[0].Type != "example.com/Theirs" {
		t.Errorf("conditions of others: %+v", remaining)
	}
}

// The API server accepts the port status of a rejected port.
func TestARefusedPortIsInTheStatus(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	shows := func(want string) {
		t.Helper()
		s.waitUntil(func() string {
			current := get[corev1.Service](s, s.ns, "web").Status.LoadBalancer.Ingress
			if len(current) != 1 || current[0].IP == "" {
				return "the address is not there"
			}
			got := ""
			for _, p := range current[0].Ports {
				got += ptr.Deref(p.Error, "none")
			}
			if got != want {
				return "of its ports the status says " + got
			}
			return ""
		})
	}
	shows("")
	s.editService("web", annotated("port_80_health-probe_protocol", "never"))
	s.waitForCondition("web", cache.ConditionAccepted, servicelb.ConditionReasonInvalid, "never")
	shows("weir.dev/InvalidAnnotation")
	s.editService("web", annotated("port_80_health-probe_protocol", "tcp"))
	s.waitForCondition("web", cache.ConditionAccepted, servicelb.ConditionReasonAccepted, "")
	shows("")
}
