// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
)

func newSyncedEnv(t *testing.T) *testEnv {
	t.Helper()
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	return s
}

// Managed addresses are given up only if the pool certainly does not exist: a 404 without details
// may come from a proxy.
func TestMissingPoolIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		finds []injectedResult
		left  []string // final members of the pool, as node numbers
		reads int
	}{
		{"a 404 that names nothing, once", []injectedResult{nameless}, nil, 0},
		{"a 404 that names nothing, twice", []injectedResult{nameless, nameless}, []string{"1"}, 2},
		{"not in a row", []injectedResult{nameless, refused, nameless}, nil, 0},
		{"a 404 of Resource Manager's", []injectedResult{{status: 404, code: "NotFound"}}, []string{"1"}, 1},
		{"404s that break off", []injectedResult{torn, torn, torn}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSyncedEnv(t)
			sent := len(s.requestTimes("web"))
			s.setReadResults("web", tt.finds...)
			s.delete(&v1alpha1.BackendPool{}, "web")
			s.waitForDeletion("web")
			var remaining []string
			for range tt.left {
				remaining = append(remaining, s.ip(1))
			}
			if got := s.poolAddresses("web"); !slices.Equal(got, remaining) {
				t.Errorf("the BackendPool is deleted, and its pool has %v, want %v", got, remaining)
			}
			if n := len(s.requestTimes("web")) - sent; tt.reads > 0 && n != tt.reads {
				t.Errorf("it went after %d reads, want %d", n, tt.reads)
			}
		})
	}
}

// Repeated failures of a removal are one event.
func TestFailingRemovalIsReportedOnce(t *testing.T) {
	s := newSyncedEnv(t)
	s.setWriteResults("web", slices.Repeat([]injectedResult{refused}, 100)...)
	s.delete(&corev1.Service{}, "web")
	s.waitForReason("web", v1alpha1.ReasonFailed, "the last attempt to take its addresses out of the pool failed: ")
	remaining := s.remainingResults("web")
	s.waitUntil(func() string { // some more attempts fail
		if c := s.syncedCondition("web"); c.Reason != v1alpha1.ReasonFailed || !strings.Contains(c.Message, "; another follows within a minute") {
			s.Errorf("between two attempts it says %s", s.syncedMessage("web"))
		}
		if s.remainingResults("web") > remaining-3 {
			return "not tried again"
		}
		return ""
	})
	s.waitForEvent("BackendPool", "web", v1alpha1.ReasonFailed, 1)
	s.waitForEvent("BackendPool", "web", v1alpha1.ReasonServiceNotFound, 1)
	if got := s.poolAddresses("web"); len(got) != 1 {
		t.Errorf("the pool holds %v", got)
	}
	s.setWriteResults("web")
	s.waitForReason("web", v1alpha1.ReasonServiceNotFound, "its addresses were removed")
}

// A Service kept only by another controller's finalizer is treated as deleted by its pool.
func TestAServiceThatIsBeingDeletedTakesNoTraffic(t *testing.T) {
	s := newSyncedEnv(t)
	const keeper = "example.com/keeper"
	keep := func(by ...string) {
		change(s, s.ns, "web", func(svc *corev1.Service) { svc.Finalizers = by })
	}
	keep(keeper)
	s.delete(&corev1.Service{}, "web")
	s.waitForReason("web", v1alpha1.ReasonServiceNotFound, "Service "+s.ns+"/web is being deleted; its addresses were removed from the pool")
	if got := s.poolAddresses("web"); len(got) != 0 {
		t.Errorf("the pool holds %v", got)
	}
	s.waitForEvent("Service", "web", backendpool.EventUpdated, 1) // when it was filled
	keep()
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.waitForMembers("web", s.ip(1))
}
