// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
)

func dryRun(value string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[metadata.DryRunAnnotation] = value
	}
}

// A dry run reports its changes once and sends and records nothing until the annotation is removed.
func TestADryRunOfANewService(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web", dryRun("true"))
	s.waitUntil(func() string {
		if len(s.messages("Service", "web", services.EventDryRun)) == 0 {
			return "nobody says what would change"
		}
		return ""
	})
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "9"))
	s.editService("web", annotated("azure-pip-name", "nobodys"))
	s.waitUntil(func() string {
		if m := s.messages("Service", "web", services.EventDryRun); len(m) != 2 || !strings.Contains(strings.Join(m, " "), "would be refused: resource group rg has no public IP nobodys") {
			return "the events: " + strings.Join(m, " | ")
		}
		return ""
	})
	if m := strings.Join(s.messages("Service", "web", services.EventDryRun), " "); !strings.Contains(m, "it would add load balancer kubernetes, add public IP kubernetes-a") {
		t.Errorf("it says %s", m)
	}
	s.waitForRequests("web", 0)
	svc := get[corev1.Service](s, s.ns, "web")
	if len(svc.Finalizers) > 0 || svc.Annotations[metadata.PlaceAnnotation] != "" {
		t.Errorf("recorded: %v %v", svc.Annotations, svc.Finalizers)
	}
	s.editService("web", func(svc *corev1.Service) {
		delete(svc.Annotations, prefix+"azure-pip-name")
		svc.Annotations[metadata.DryRunAnnotation] = " False"
	})
	s.waitForAddresses("web", 1)
	s.waitForRequests("web", 1)
}

// A Service in dry run keeps its load balancer and pool unchanged, and the BackendPool reports what
// would change.
func TestADryRunOfAServiceThatIsServed(t *testing.T) {
	s := newTestEnv(t)
	s.createNode(1, s.ip(1))
	s.createNode(2, s.ip(2))
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.waitForRequests("web", 1)
	s.editService("web", dryRun("true"))
	s.waitForReason("web.kubernetes", v1alpha1.ReasonDryRun, "the pool remains unchanged in Azure")
	s.waitUntil(func() string {
		c := meta.FindStatusCondition(s.status("web.kubernetes").Conditions, v1alpha1.ConditionDryRun)
		if c == nil || c.Status != "True" || !strings.Contains(c.Message, "it would add load balancer kubernetes") {
			return "no condition says what would change"
		}
		return ""
	})
	before := len(cloud.Calls(ofPool(s.ns + "-web")))
	s.createSlice("web-1", "web", s.endpointOn(1))
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "9"))
	s.editService("web", dryRun("perhaps"))
	s.waitUntil(func() string {
		if m := strings.Join(s.messages("Service", "web", services.EventSyncFailed), " "); !strings.Contains(m, `weir.dev/dry-run is "perhaps": want "true" or "false"`) {
			return "the value is not refused: " + m
		}
		return ""
	})
	if calls := cloud.Calls(ofPool(s.ns + "-web")); len(calls) != before {
		t.Errorf("the pool was touched: %v", calls[before:])
	}
	s.waitForRequests("web", 1)

	s.editService("web", func(svc *corev1.Service) { delete(svc.Annotations, metadata.DryRunAnnotation) })
	s.waitForRequests("web", 2)
	s.waitUntil(func() string {
		if c := s.status("web.kubernetes").Conditions; meta.FindStatusCondition(c, v1alpha1.ConditionDryRun) != nil {
			return "it still says what would change"
		}
		return ""
	})
}

// A deleted Service is removed despite a dry run.
func TestADryRunDoesNotKeepAServiceFromGoing(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	svc := s.waitForAddresses("web", 1)
	s.editService("web", dryRun("true"))
	s.waitForReason("web.kubernetes", v1alpha1.ReasonDryRun, "")
	s.delete(&corev1.Service{}, "web")
	s.waitUntil(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(svc), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
}

// A bound pool of a foreign load balancer is not changed, either.
func TestADryRunOfABoundPool(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.editService("web", dryRun("true"))
	s.waitForReason("web", v1alpha1.ReasonDryRun, "weir.dev/dry-run: the pool remains unchanged in Azure")
	writes := s.countWrites()
	s.changeSlice("a", s.endpointOn(2))
	s.createService("other", corev1.ServiceTypeNodePort)
	s.createSlice("b", "other", s.endpointOn(2))
	s.azurePool("fence")
	s.createBackendPool("fence", "other")
	s.waitForMembers("fence", s.ip(2))
	if got := s.poolAddresses("web"); len(got) != 1 || got[0] != s.ip(1) || s.countWrites() != writes+1 {
		t.Errorf("the pool was written: %v", got)
	}
	s.editService("web", func(svc *corev1.Service) { delete(svc.Annotations, metadata.DryRunAnnotation) })
	s.waitForMembers("web", s.ip(2))
}
