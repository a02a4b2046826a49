// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

func (env *testEnv) waitForConflict(name, part string) {
	env.Helper()
	env.waitUntil(func() string {
		c := meta.FindStatusCondition(get[corev1.Service](env, env.ns, name).Status.Conditions, metadata.ConditionConflict)
		switch {
		case part == "" && c != nil:
			return "still contested: " + c.Message
		case part != "" && (c == nil || c.Status != metav1.ConditionTrue || c.Reason != services.EventConflict || !strings.Contains(c.Message, part)):
			return "not contested as wanted"
		}
		return ""
	})
}

func conflictResult(until time.Time) func(loadbalancer.Request) loadbalancer.Result {
	return func(req loadbalancer.Request) loadbalancer.Result {
		r := deployer.successResult(req)
		r.Changed = false
		r.Conflicts = []loadbalancer.Conflict{{
			Resource: "load balancer kubernetes", Reverted: []string{"rule a1-TCP-80: idleTimeoutInMinutes 4, Weir wants 10"}, Until: until,
		}}
		return r
	}
}

// A conflict is reported once per period, and shown in a condition while it lasts.
func TestConflictIsReported(t *testing.T) {
	s := newTestEnv(t)
	name, later := s.ns+"/web", time.Now().Add(time.Hour)
	s.createLoadBalanced("web")
	svc := s.waitForAddresses("web", 1)
	before := svc.DeepCopy()
	svc.Status.Conditions = []metav1.Condition{{Type: "example.com/Theirs", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.Now()}}
	if err := api.Status().Patch(t.Context(), svc, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}

	deployer.setResult(name, conflictResult(later))
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.waitForRequests("web", 2)
	s.waitForConflict("web", "idleTimeoutInMinutes 4, Weir wants 10")
	s.waitForEvent("Service", "web", services.EventConflict, 1)
	if got := s.messages("Service", "web", services.EventConflict)[0]; !strings.Contains(got, "load balancer kubernetes") || !strings.Contains(got, "until "+later.UTC().Format("2006-01-02T15:04")[:13]) {
		t.Errorf("said: %s", got)
	}

	// The same period is not reported again, even after a user request.
	s.editService("web", func(svc *corev1.Service) { svc.Annotations[metadata.WriteAgainAnnotation] = "1" })
	if last := s.waitForRequests("web", 3)[2]; last.RetryToken != "1" {
		t.Errorf("the request: %+v", last)
	}
	deployer.setResult(name, conflictResult(time.Now().Add(1500*time.Millisecond)))
	s.editService("web", func(svc *corev1.Service) { svc.Annotations[metadata.WriteAgainAnnotation] = "2" })
	s.waitForEvent("Service", "web", services.EventConflict, 2)
	deployer.setResult(name, conflictResult(time.Time{}))
	s.waitForConflict("web", "checks whether it remains")
	s.waitForEvent("Service", "web", services.EventConflict, 2)

	deployer.setResult(name, nil)
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "20"))
	s.waitForConflict("web", "")
	if remaining := get[corev1.Service](s, s.ns, "web").Status.Conditions; meta.FindStatusCondition(remaining, "example.com/Theirs") == nil {
		t.Errorf("conditions of others: %+v", remaining)
	}
}

// The condition of an earlier process is removed if there is no conflict.
func TestConflictConditionIsRemovedWithTheLoadBalancer(t *testing.T) {
	s := newTestEnv(t)
	deployer.setResult(s.ns+"/web", conflictResult(time.Now().Add(time.Hour)))
	s.createLoadBalanced("web")
	s.waitForConflict("web", "Weir wants 10")
	deployer.setResult(s.ns+"/web", nil)
	s.editService("web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalTrafficPolicy, svc.Spec.AllocateLoadBalancerNodePorts, svc.Spec.HealthCheckNodePort = "", nil, 0
	})
	s.waitForConflict("web", "")
}
