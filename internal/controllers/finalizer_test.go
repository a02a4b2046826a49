// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// If a user removes Weir's finalizer from a stuck Service, Weir still cleans up.
func TestRemovedFinalizerLeavesCleanupToWeir(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("web")
	svc := s.waitForAddresses("web", 1)
	stuck := true
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		if stuck {
			return loadbalancer.Result{Request: req, Err: &armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}}
		}
		return deployer.successResult(req)
	})
	s.delete(&corev1.Service{}, "web")
	s.checkLastRequest(s.ns+"/web", 3, func(loadbalancer.Request) bool { return true })
	s.editService("web", func(svc *corev1.Service) { svc.Finalizers = nil })
	s.waitUntil(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(svc), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
	deployer.mu.Lock()
	before := len(deployer.asked[s.ns+"/web"])
	stuck = false
	deployer.mu.Unlock()
	s.checkLastRequest(s.ns+"/web", before+1, func(r loadbalancer.Request) bool {
		return r.Desired == nil && r.Owner == service.OwnerNameOf(string(svc.UID)) && len(r.RemoveFrom) == 1 && len(r.StatusAddresses) == 1
	})
}

// The BackendPool of a deleted Service may request once more, so only the latest request is
// checked.
func (env *testEnv) checkLastRequest(name string, times int, check func(loadbalancer.Request) bool) {
	env.Helper()
	env.waitUntil(func() string {
		deployer.mu.Lock()
		defer deployer.mu.Unlock()
		requests := deployer.asked[name]
		switch {
		case len(requests) < times:
			return fmt.Sprintf("asked %d times, want %d", len(requests), times)
		case !check(requests[times-1]):
			return fmt.Sprintf("request %d is %+v", times, requests[times-1])
		}
		return ""
	})
}
