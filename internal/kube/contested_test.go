// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
)

func (s *scene) contested(name, part string) {
	s.Helper()
	s.until(func() string {
		c := meta.FindStatusCondition(get[corev1.Service](s, s.ns, name).Status.Conditions, view.ConditionContested)
		switch {
		case part == "" && c != nil:
			return "still contested: " + c.Message
		case part != "" && (c == nil || c.Status != metav1.ConditionTrue || c.Reason != services.EventContested || !strings.Contains(c.Message, part)):
			return "not contested as wanted"
		}
		return ""
	})
}

func fought(until time.Time) func(balancer.Request) balancer.Result {
	return func(req balancer.Request) balancer.Result {
		r := balancers.succeeds(req)
		r.Changed = false
		r.Contests = []balancer.Contest{{
			In: "load balancer kubernetes", Undone: []string{"rule a1-TCP-80: idleTimeoutInMinutes 4, Weir wants 10"}, Until: until,
		}}
		return r
	}
}

// A conflict is reported once per period, and shown in a condition while it lasts.
func TestAFightIsTold(t *testing.T) {
	s := newScene(t)
	name, later := s.ns+"/web", time.Now().Add(time.Hour)
	s.wants("web")
	svc := s.balanced("web", 1)
	before := svc.DeepCopy()
	svc.Status.Conditions = []metav1.Condition{{Type: "example.com/Theirs", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.Now()}}
	if err := api.Status().Patch(t.Context(), svc, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}

	balancers.answers(name, fought(later))
	s.edits("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.asked("web", 2)
	s.contested("web", "idleTimeoutInMinutes 4, Weir wants 10")
	s.wasTold("Service", "web", services.EventContested, 1)
	if got := s.messages("Service", "web", services.EventContested)[0]; !strings.Contains(got, "load balancer kubernetes") || !strings.Contains(got, "until "+later.UTC().Format("2006-01-02T15:04")[:13]) {
		t.Errorf("said: %s", got)
	}

	// The same period is not reported again, even after a user request.
	s.edits("web", func(svc *corev1.Service) { svc.Annotations[view.WriteAgainAnnotation] = "1" })
	if last := s.asked("web", 3)[2]; last.Again != "1" {
		t.Errorf("the request: %+v", last)
	}
	balancers.answers(name, fought(time.Now().Add(1500*time.Millisecond)))
	s.edits("web", func(svc *corev1.Service) { svc.Annotations[view.WriteAgainAnnotation] = "2" })
	s.wasTold("Service", "web", services.EventContested, 2)
	balancers.answers(name, fought(time.Time{}))
	s.contested("web", "looks whether it stays")
	s.wasTold("Service", "web", services.EventContested, 2)

	balancers.answers(name, nil)
	s.edits("web", annotated("azure-load-balancer-tcp-idle-timeout", "20"))
	s.contested("web", "")
	if left := get[corev1.Service](s, s.ns, "web").Status.Conditions; meta.FindStatusCondition(left, "example.com/Theirs") == nil {
		t.Errorf("conditions of others: %+v", left)
	}
}

// The condition of an earlier process is removed if there is no conflict.
func TestTheConditionOfAFightGoesWithTheLoadBalancer(t *testing.T) {
	s := newScene(t)
	balancers.answers(s.ns+"/web", fought(time.Now().Add(time.Hour)))
	s.wants("web")
	s.contested("web", "Weir wants 10")
	balancers.answers(s.ns+"/web", nil)
	s.edits("web", func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
		svc.Spec.ExternalTrafficPolicy, svc.Spec.AllocateLoadBalancerNodePorts, svc.Spec.HealthCheckNodePort = "", nil, 0
	})
	s.contested("web", "")
}
