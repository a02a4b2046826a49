// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/lb"
)

// A Retry-After holds for the pool, whatever happens to the objects. Not parallel with tests that
// stop the controller.
func TestRetryAfterIsHonored(t *testing.T) {
	t.Run("the Service is made anew", func(t *testing.T) {
		s := newParkedEnv(t)
		s.delete(&corev1.Service{}, "web")
		s.createService("web", corev1.ServiceTypeLoadBalancer)
		s.checkResumedAfter(s.ip(2))
	})
	t.Run("a short pause", func(t *testing.T) {
		s := newParkedEnv(t)
		s.setPaused(true)
		s.waitForReason("web", v1alpha1.ReasonPaused, "")
		s.setPaused(false)
		// Not that the pool is read again, which is what it waits for.
		s.waitForReason("web", v1alpha1.ReasonUpdating, "a change waits, because Azure accepts no request before ")
		s.waitForParked(v1alpha1.ReasonRetryAfter)
		s.checkResumedAfter(s.ip(2))
	})
	t.Run("a pause of more than an interval", func(t *testing.T) {
		s := newParkedEnv(t)
		s.setPaused(true)
		s.waitForReason("web", v1alpha1.ReasonPaused, "")
		s.checkRetryAfter("web") // also for the next process
		until := time.Now().Add(1500 * time.Millisecond)
		s.waitUntil(func() string {
			if time.Now().Before(until) {
				return "paused"
			}
			return ""
		})
		s.setPaused(false)
		s.checkResumedAfter(s.ip(2))
	})
	t.Run("members come and go", func(t *testing.T) {
		s := newParkedEnv(t)
		s.changeSlice("a", s.endpointOn(2), s.endpointOn(3))
		s.waitForDesired(2)
		s.changeSlice("a", s.endpointOn(1), s.endpointOn(2), s.endpointOn(3))
		s.waitForDesired(3)
		s.waitForParked(v1alpha1.ReasonRetryAfter)
		s.checkResumedAfter(s.ip(1), s.ip(2), s.ip(3))
	})
	t.Run("behind whoever has the lane", func(t *testing.T) {
		s := newBoundEnv(t)
		s.createSlice("a", "web", s.endpointOn(1))
		s.waitForMembers("web", s.ip(1))
		unlock, err := controller.lanes.Lock(t.Context(), lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg", Name: s.ns})
		if err != nil {
			t.Fatal(err)
		}
		s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
		s.waitForReason("web", v1alpha1.ReasonUpdating, "a change waits: another write on its load balancer comes first")
		s.waitForDesired(2)
		if meta.IsStatusConditionTrue(s.status("web").Conditions, v1alpha1.ConditionParked) {
			t.Error("parked, though Azure asked for nothing")
		}
		unlock()
		s.waitForMembers("web", s.ip(1), s.ip(2))
	})
}

func newParkedEnv(t *testing.T) *testEnv {
	t.Helper()
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.setWriteResults("web", throttled)
	s.changeSlice("a", s.endpointOn(2))
	s.waitForReason("web", v1alpha1.ReasonRetrying, "retry 1 of 1 follows at ")
	s.waitForParked(v1alpha1.ReasonRetryAfter)
	return s
}

func (env *testEnv) setPaused(on bool) {
	env.Helper()
	change(env, env.ns, "web", func(p *v1alpha1.BackendPool) { p.Spec.Paused = on })
}

func (env *testEnv) waitForParked(reason string) {
	env.Helper()
	st := env.status("web")
	parked := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionParked)
	if parked == nil || parked.Status != "True" || parked.Reason != reason || st.NextEligibleAt == nil || !strings.HasSuffix(parked.Message, st.NextEligibleAt.UTC().Format(time.RFC3339)) {
		env.Errorf("status of a parked pool: %+v", st)
	}
}

func (env *testEnv) checkRetryAfter(name string) {
	env.Helper()
	st := env.status(name)
	parked := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionParked)
	if parked == nil || parked.Status != "True" || parked.Reason != v1alpha1.ReasonNothingWaits || st.NextEligibleAt == nil ||
		parked.Message != "Azure accepts no request before "+st.NextEligibleAt.UTC().Format(time.RFC3339)+"; no attempt waits for that time" {
		env.Errorf("status of a pool that nothing is tried for: %+v", st)
	}
}

func (env *testEnv) waitForDesired(members int32) {
	env.Helper()
	sent := len(env.requestTimes("web"))
	env.waitUntil(func() string {
		if got := env.status("web").Desired; got == nil || *got != members {
			return fmt.Sprintf("desired is not %d: %s", members, env.syncedMessage("web"))
		}
		return ""
	})
	if n := len(env.requestTimes("web")) - sent; n != 0 {
		env.Errorf("%d requests to tell how many members are wanted", n)
	}
}

// checkResumedAfter checks that no request was sent within the Retry-After.
func (env *testEnv) checkResumedAfter(ips ...string) {
	env.Helper()
	if n := env.remainingResults("web"); n != 0 {
		env.Fatal("the write was not throttled yet")
	}
	env.waitForMembers("web", ips...)
	sent := env.requestTimes("web")
	longest := time.Duration(0)
	for i := range len(sent) - 1 {
		longest = max(longest, sent[i+1].Sub(sent[i]))
	}
	if longest < retryAfter {
		env.Errorf("the longest time without a request was %s, and Azure asked for %s", longest, retryAfter)
	}
}

// An endpoint event starts another attempt while a pool is out of sync, and costs no call while it
// is in sync, if the nodes are the same.
func TestAPodThatIsReplacedStartsAnotherAttemptWhereOneFailed(t *testing.T) {
	s := newBoundEnv(t)
	pod := func(ip string) { // on the same node
		endpoint := s.endpointOn(2)
		endpoint.Addresses = []string{ip}
		s.changeSlice("a", endpoint)
	}
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	s.setWriteResults("web", refused, refused)
	pod("192.0.2.10")
	s.waitForEvent("Service", "web", backendpool.EventFailed, 1)
	s.waitForReason("web", v1alpha1.ReasonFailed, "Weir retries when the members change")
	pod("192.0.2.11")
	s.waitForEvent("Service", "web", backendpool.EventFailed, 2)
	pod("192.0.2.12")
	s.waitForMembers("web", s.ip(2))

	sent := len(s.requestTimes("web"))
	pod("192.0.2.13")
	s.azurePool("fence") // a later change in the same queue
	s.createBackendPool("fence", "web")
	s.waitForMembers("fence", s.ip(2))
	pod("192.0.2.14")
	s.createSlice("b", "web", s.endpointOn(3))
	s.waitForMembers("fence", s.ip(2), s.ip(3))
	s.waitForMembers("web", s.ip(2), s.ip(3))
	if n := len(s.requestTimes("web")) - sent; n > 4 { // one change: a read, a write, and a check
		t.Errorf("%d requests, want those of the node that came", n)
	}
	for _, output := range s.messages("Service", "web", backendpool.EventUpdated) {
		if output != "Load balancer backend pool updated successfully" {
			t.Errorf("event %q", output)
		}
	}
}
