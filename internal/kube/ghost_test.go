// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/service"
)

// If a user removes Weir's finalizer from a stuck Service, Weir still cleans up.
func TestWhoTakesAFinalizerAwayLeavesTheRestToWeir(t *testing.T) {
	s := newScene(t)
	s.wants("web")
	svc := s.balanced("web", 1)
	stuck := true
	balancers.answers(s.ns+"/web", func(req balancer.Request) balancer.Result {
		if stuck {
			return balancer.Result{Request: req, Err: &fault.Fault{Class: fault.Terminal, Code: "InternalServerError", Err: errors.New("not now")}}
		}
		return balancers.succeeds(req)
	})
	s.delete(&corev1.Service{}, "web")
	s.asks(s.ns+"/web", 3, func(balancer.Request) bool { return true })
	s.edits("web", func(svc *corev1.Service) { svc.Finalizers = nil })
	s.until(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(svc), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
	balancers.mu.Lock()
	before := len(balancers.asked[s.ns+"/web"])
	stuck = false
	balancers.mu.Unlock()
	s.asks(s.ns+"/web", before+1, func(r balancer.Request) bool {
		return r.Desired == nil && r.Owner == service.Owner(string(svc.UID)) && len(r.Leave) == 1 && len(r.Shown) == 1
	})
}

// The BackendPool of a deleted Service may request once more, so only the latest request is
// checked.
func (s *scene) asks(name string, times int, check func(balancer.Request) bool) {
	s.Helper()
	s.until(func() string {
		balancers.mu.Lock()
		defer balancers.mu.Unlock()
		all := balancers.asked[name]
		switch {
		case len(all) < times:
			return fmt.Sprintf("asked %d times, want %d", len(all), times)
		case !check(all[times-1]):
			return fmt.Sprintf("request %d is %+v", times, all[times-1])
		}
		return ""
	})
}
