// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// A restarted controller reads the written addresses from the status, checks every pool once, and
// repairs what changed. Not parallel: it restarts the shared controller.
func TestRestart(t *testing.T) {
	s := newTestEnv(t, "web", "quiet", "gone", "parked", "paused")
	s.createNode(1)
	s.createNode(2)
	for _, name := range []string{"web", "quiet", "gone", "parked", "paused"} {
		s.bindPool(name)
		s.waitForMembers(name, s.ip(1))
	}
	if err := controller.stop(); err != nil {
		t.Fatal(err)
	}
	s.changeSlice("web", s.endpointOn(2))
	s.delete(&discoveryv1.EndpointSlice{}, "gone")
	s.delete(&corev1.Service{}, "gone")
	// Left by a killed process: recorded and written, but not trimmed.
	orphan := s.ip(99)
	s.editStatus("web", func(status *v1alpha1.BackendPoolStatus) {
		status.WrittenAddresses = append(status.WrittenAddresses, orphan)
	})
	s.azurePool("web", s.ip(1), orphan)
	// Two pools with a Retry-After, one of them paused.
	change(s, s.ns, "paused", func(p *v1alpha1.BackendPool) { p.Spec.Paused = true })
	requested, sent := metav1.NewTime(time.Now().Add(retryAfter)).Rfc3339Copy(), map[string]int{}
	for _, name := range []string{"parked", "paused"} {
		sent[name] = len(s.requestTimes(name))
		s.editStatus(name, func(status *v1alpha1.BackendPoolStatus) { status.NextEligibleAt = &requested })
	}

	looks := s.countReads("quiet")
	var err error
	if controller, err = start(); err != nil {
		t.Fatal(err)
	}
	s.waitForReason("paused", v1alpha1.ReasonPaused, "spec.paused is set")
	s.checkRetryAfter("paused")
	change(s, s.ns, "paused", func(p *v1alpha1.BackendPool) { p.Spec.Paused = false })
	s.waitForMembers("web", s.ip(2))
	if err := controller.kube.Synced(nil); err != nil {
		t.Errorf("a controller at work is not ready: %v", err)
	}
	s.waitForReason("gone", v1alpha1.ReasonServiceNotFound, "its addresses were removed")
	s.waitUntil(func() string {
		if s.countReads("quiet") == looks {
			return "the quiet pool was not looked at"
		}
		return ""
	})
	if got := s.poolAddresses("quiet"); len(got) != 1 {
		t.Errorf("the quiet pool holds %v", got)
	}
	s.waitForReason("parked", v1alpha1.ReasonInSync, "in sync with 1 node") // as far as is known
	if c := meta.FindStatusCondition(s.status("parked").Conditions, v1alpha1.ConditionParked); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonRetryAfter {
		t.Errorf("parked before the restart, and after it: %+v", c)
	}
	for name, before := range sent {
		s.checkRequestTime(name, before, requested.Time)
	}
}

func (env *testEnv) editStatus(name string, edit func(*v1alpha1.BackendPoolStatus)) {
	env.Helper()
	p := get[v1alpha1.BackendPool](env, env.ns, name)
	edit(&p.Status)
	if err := api.Status().Update(env.Context(), p); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) checkRequestTime(name string, before int, until time.Time) {
	env.Helper()
	env.waitUntil(func() string {
		if len(env.requestTimes(name)) == before {
			return name + " was not looked at"
		}
		return ""
	})
	env.waitForMembers(name, env.ip(1))
	if first := env.requestTimes(name)[before]; first.Before(until) {
		env.Errorf("%s was called %s before the time that Azure had named", name, until.Sub(first))
	}
}
